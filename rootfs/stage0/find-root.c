/*
 * Finds the root file system: a file named after its dm-verity root hash, in the initramfs or on any disk, stick or CD with
 * ISO 9660 or FAT. The contents of that file are trusted only after dm-verity has verified them against the hash.
 */
#include "stage0.h"

#include <linux/mount.h>
#include <linux/stat.h>

#define TIMEOUT 180 /* seconds; sticks behind hubs and controllers with many disks appear late */
#define TIMEOUT_AFTER_DAMAGE 20
#define HINT 10

/* systemd-boot and its stub store the GPT partition they were started from here; our media have no GPT. */
#define LOADER_PARTITION "/medium/LoaderDevicePartUUID-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"

static const struct root *wanted;
static const char *wanted_type;
static struct text *source_of_root;
/* What was wrong with the last file of the right name. */
static struct text damage;

static long has(long fd, long offset, const char *bytes)
{
	char there[8];
	word size = length_of(bytes);

	if (call(__NR_pread64, fd, (long)there, size, offset, 0) != (long)size)
		return 0;
	for (word n = 0; n < size; n++)
		if (there[n] != bytes[n])
			return 0;
	return 1;
}

/* The kernel logs an error for every device with another file system, so only devices with a matching signature are mounted. */
static const char *type_of(const char *device)
{
	long fd = open_file(device, O_RDONLY_CLOEXEC);
	const char *type = 0;

	if (fd < 0)
		return 0;
	if (has(fd, 32769, "CD001"))
		type = "iso9660";
	else if (has(fd, 510, "\x55\xaa") && (has(fd, 82, "FAT") || has(fd, 54, "FAT")))
		type = "vfat";
	close_file(fd);
	return type;
}

/* Reads the start of init's program, so that a damaged image is reported here with a clear message. */
static long read_some(void)
{
	static char some[65536];
	long fd = open_file("/root/usr/bin/ichor", O_RDONLY_CLOEXEC);
	long got = fd < 0 ? fd : call(__NR_read, fd, (long)some, sizeof some, 0, 0);

	close_file(fd);
	return got > 0 ? 0 : got < 0 ? got : -1;
}

/* Reports a problem with a file, once. */
static long refuse(const char *path, const char *where, const char *what)
{
	static struct text now;

	now.length = 0;
	add(&now, path);
	add(&now, " on ");
	add(&now, where);
	add(&now, what);
	if (!same(now.at, damage.at)) {
		damage = now;
		say("the root file system ", damage.at, ": looking further", "");
	}
	return 0;
}

/* Mounts the file on /root if it is what it is named after. */
static long try_image(const char *path, const char *where)
{
	long image = open_file(path, O_RDONLY_CLOEXEC);
	long size, loop, result;

	if (image < 0)
		return 0;
	size = call(__NR_lseek, image, 0, 2, 0, 0);
	if (size != (long)(wanted->blocks * 4096)) {
		close_file(image);
		return refuse(path, where, " is truncated");
	}
	loop = attach_loop(image);
	close_file(image);
	if (loop < 0)
		stop("there is no loop device for", path, loop, "the kernel lacks it");
	result = verify_loop(wanted, loop);
	if (result < 0)
		stop("cannot set up dm-verity for", path, result, "the kernel lacks it");
	result = mount_on("/dev/dm-0", "/root", "squashfs", MS_RDONLY | MS_NODEV, 0);
	if (result >= 0) {
		result = read_some();
		if (result < 0)
			call(__NR_umount2, (long)"/root", 0, 0, 0, 0);
	}
	if (result < 0) {
		forget_verified();
		detach_loop(loop);
		return refuse(path, where, " has been changed: it is not what its hash vouches for");
	}
	result = verify_strictly(wanted, loop);
	if (result < 0)
		stop("cannot set up dm-verity for", path, result, "the kernel lacks it");
	detach_loop(loop); /* takes effect with the last use */
	return 1;
}

static long look_at_device(const char *folder, const char *name)
{
	struct text device = { .length = 0 }, path = { .length = 0 };
	const char *type;

	(void)folder;
	if (starts(name, "loop") || starts(name, "ram") || starts(name, "dm-") || starts(name, "zram") || starts(name, "fd"))
		return 0;
	add(&device, "/dev/");
	add(&device, name);
	type = type_of(device.at);
	if (!type || !same(type, wanted_type) || mount_on(device.at, "/medium", type, MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC, 0) < 0)
		return 0;
	add(&path, "/medium");
	add(&path, wanted->name);
	if (try_image(path.at, device.at)) {
		add(source_of_root, device.at);
		add(source_of_root, " ");
		add(source_of_root, type);
		return 1;
	}
	call(__NR_umount2, (long)"/medium", 0, 0, 0, 0);
	return 0;
}

/* Whether this start is one of an installed system: GRUB's entries say so, and the firmware does. */
static int started_from_disk(void)
{
	long variable;

	if (parameter("ichor.slot="))
		return 1;
	if (mount_on("efivarfs", "/medium", "efivarfs", MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC, 0) < 0)
		return 0;
	variable = open_file(LOADER_PARTITION, O_RDONLY_CLOEXEC);
	close_file(variable);
	call(__NR_umount2, (long)"/medium", 0, 0, 0, 0);
	return variable >= 0;
}

void find_root(const struct root *root, struct text *source)
{
	/*
	 * A medium may stay in the drive after the installation and be removed at any time, so an installed system uses its own
	 * disk first. Other starts use the medium first, since their disk may be the target of the installation. A stick with our
	 * image has both file systems on the same bytes; only the ISO 9660 one has the files that an installation needs.
	 */
	static const char *const media_first[] = { "iso9660", "vfat" }, *const disk_first[] = { "vfat", "iso9660" };
	const char *const *types;
	long since = seconds_up(), hinted = 0;

	wanted = root;
	source_of_root = source;
	make_folder("/root", 0755);
	make_folder("/medium", 0755);
	load_needed_modules();
	if (try_image(root->name, "the initramfs")) {
		CALL_UNLINK(root->name); /* its bytes stay as long as the mount */
		add(source, "initramfs");
		return;
	}
	types = started_from_disk() ? disk_first : media_first;
	for (;;) {
		load_modules_of_devices();
		for (int n = 0; n < 2; n++) {
			wanted_type = types[n];
			if (each_entry("/sys/class/block", look_at_device))
				return;
		}
		if (seconds_up() - since > (damage.length ? TIMEOUT_AFTER_DAMAGE : TIMEOUT))
			break;
		if (!hinted && seconds_up() - since > HINT) {
			say("waiting for a disk, stick or CD with ", root->name, " on it", "");
			hinted = 1;
		}
		/* A medium with a damaged file is not read over and over while a better one may yet come. */
		pause_for(damage.length ? 2000 : 100);
	}
	if (damage.length)
		stop("the root file system", damage.at, 0, damaged);
	stop("no disk, stick or CD holds", root->name, 0, "plug in the medium that kernel and initramfs came from");
}
