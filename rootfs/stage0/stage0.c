/*
 * stage 0: the first process of a machine, in the initramfs. It mounts what the runtime of init needs before it can begin
 * (proc, sysfs, devtmpfs), opens the console, loads the modules that reading the root takes on this machine, finds the root
 * file system, has every block of it verified, makes it the root and becomes /sbin/init. It needs no C library.
 *
 * For init it leaves on /run/ichor: `key.pub` (whose releases this system trusts), `root` (what is running), `source` (where
 * it came from), the policy of a signed image (`tpm2-pcr-*`) and, on `medium`, the file system that holds it.
 */
#include "stage0.h"

#include <linux/mount.h>

static void mount_virtual(const char *type, const char *target, word flags)
{
	long result;

	make_folder(target, 0755);
	result = mount_on(type, target, type, flags, 0);
	if (result < 0 && result != -E_BUSY)
		stop("cannot mount", target, result, "the kernel lacks it");
}

static void open_console(void)
{
	long fd = open_file("/dev/console", O_RDWR);

	if (fd < 0)
		return;
	for (int n = 0; n < 3; n++)
		CALL_DUP2(fd, n);
	if (fd > 2)
		close_file(fd);
}

static char description[512];

/* `<root hash> <salt> <blocks of data> <blocks in all>` */
static void read_root(struct root *root)
{
	struct text name = { .length = 0 };
	const char *at = description;
	long size = read_text("/ichor/root", description, sizeof description);
	char *into[] = { root->hash, root->salt };

	if (size < 0)
		stop("cannot read", "/ichor/root", size, damaged);
	for (int n = 0; n < 2; n++) {
		int digits = 0;

		while ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f')) {
			if (digits == 64)
				stop("cannot make sense of", "/ichor/root", 0, damaged);
			into[n][digits++] = *at++;
		}
		if (digits != 64 || *at++ != ' ')
			stop("cannot make sense of", "/ichor/root", 0, damaged);
	}
	root->data_blocks = number_at(&at);
	if (*at++ != ' ')
		stop("cannot make sense of", "/ichor/root", 0, damaged);
	root->blocks = number_at(&at);
	if (!root->data_blocks || root->blocks <= root->data_blocks)
		stop("cannot make sense of", "/ichor/root", 0, damaged);
	add(&name, "/ichor/");
	for (int n = 0; n < 16; n++)
		name.at[name.length++] = root->hash[n];
	name.at[name.length] = 0;
	add(&name, ".sqsh");
	memcpy(root->name, name.at, name.length + 1);
}

static void move(const char *from, const char *to)
{
	long result = mount_on(from, to, 0, MS_MOVE, 0);

	if (result < 0)
		stop("cannot move a mount to", to, result, damaged);
}

/* /run is memory; what stage 0 knows and init needs lies there. */
static void hand_over(struct text *source)
{
	static char key[512];
	long size = read_text("/ichor/key.pub", key, sizeof key);
	long result = mount_on("tmpfs", "/root/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");

	if (size < 0)
		stop("cannot read", "/ichor/key.pub", size, damaged);
	if (result < 0)
		stop("cannot mount", "/run", result, "the kernel lacks tmpfs");
	make_folder("/root/run/ichor", 0755);
	write_text("/root/run/ichor/key.pub", key);
	write_text("/root/run/ichor/root", description);
	keep_policy("/root/run/ichor");
	add(source, "\n");
	write_text("/root/run/ichor/source", source->at);
	if (!starts(source->at, "initramfs")) {
		make_folder("/root/run/ichor/medium", 0755);
		move("/medium", "/root/run/ichor/medium");
	}
}

__attribute__((noreturn, used)) static void start(void)
{
	static const char *const arguments[] = { "/sbin/init", 0 };
	/* The last one is explained at `initHeap` in src/programs/node-supervisor/container-spec.ts. */
	static const char *const environment[] = {
		"PATH=/usr/bin:/usr/sbin", "HOME=/", "TERM=linux", "BUN_JSC_forceRAMSize=167772160", 0
	};
	static struct root root;
	static struct text source;
	long result;

	mount_virtual("devtmpfs", "/dev", MS_NOSUID);
	open_console();
	mount_virtual("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
	mount_virtual("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC);
	measure("enter-initrd");
	read_root(&root);
	read_modules();
	find_root(&root, &source);
	say("root file system ", root.name, " from ", source.at);
	say("every block of it is verified as it is read: if the kernel reports a corrupted block, ", damaged, "", "");
	forget_modules();
	hand_over(&source);
	load_policy();
	measure("leave-initrd");
	move("/dev", "/root/dev");
	move("/proc", "/root/proc");
	move("/sys", "/root/sys");
	CALL_UNLINK("/init");
	call(__NR_chdir, (long)"/root", 0, 0, 0, 0);
	move(".", "/");
	result = call(__NR_chroot, (long)".", 0, 0, 0, 0);
	if (result >= 0)
		result = call(__NR_execve, (long)arguments[0], (long)arguments, (long)environment, 0, 0);
	stop("cannot start", arguments[0], result, damaged);
}

#ifdef __aarch64__
__asm__(".globl _start\n_start:\n\tb start\n");
#else
/* The kernel leaves the stack aligned to 16 bytes, and a function expects a return address there. */
__asm__(".globl _start\n_start:\n\tcall start\n");
#endif
