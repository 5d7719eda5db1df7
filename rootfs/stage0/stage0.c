/*
 * stage 0: the first process of a machine, in the initramfs. It mounts what the runtime of init needs before it can begin
 * (proc, sysfs, devtmpfs), opens the console, loads the modules that reading the root takes, in the order the build wrote
 * down, mounts the SquashFS images that lie beside it, makes them the root and becomes /sbin/init. It needs no C library.
 */
#include <asm/unistd_64.h>
#include <linux/fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <linux/reboot.h>
#include <linux/time.h>

#define EEXIST 17
#define EBUSY 16
#define ORDER_LIMIT 65536

typedef unsigned long word;

static long call(long number, long a, long b, long c, long d, long e)
{
	long result;
	register long fourth __asm__("r10") = d;
	register long fifth __asm__("r8") = e;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
			 : "rcx", "r11", "memory");
	return result;
}

static word length(const char *text)
{
	word n = 0;

	while (text[n])
		n++;
	return n;
}

static void say(const char *text)
{
	call(__NR_write, 2, (long)text, length(text), 0, 0);
}

static char *decimal(long value, char *end)
{
	*--end = 0;
	do
		*--end = '0' + value % 10;
	while (value /= 10);
	return end;
}

/* Nothing can go on: one line that says why and what to do, and after a minute another try. */
__attribute__((noreturn)) static void stop(const char *what, const char *subject, long result, const char *way_out)
{
	struct { long seconds, nanoseconds; } minute = { 60, 0 };
	char digits[24];

	say("[stage0] the machine cannot start: ");
	say(what);
	say(" ");
	say(subject);
	if (result < 0) {
		say(": error ");
		say(decimal(-result, digits + sizeof digits));
	}
	say("; ");
	say(way_out);
	say(". It starts again in one minute.\n");
	call(__NR_nanosleep, (long)&minute, 0, 0, 0, 0);
	for (;;)
		call(__NR_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_RESTART, 0, 0);
}

static const char damaged[] = "the image is damaged or incomplete, make or download it again";

static void mount_virtual(const char *type, const char *target, word flags)
{
	long result;

	call(__NR_mkdir, (long)target, 0755, 0, 0, 0);
	result = call(__NR_mount, (long)type, (long)target, (long)type, flags, 0);
	if (result < 0 && result != -EBUSY)
		stop("cannot mount", target, result, "the kernel lacks it");
}

static void open_console(void)
{
	long fd = call(__NR_open, (long)"/dev/console", O_RDWR, 0, 0, 0);

	if (fd < 0)
		return;
	for (int n = 0; n < 3; n++)
		call(__NR_dup2, fd, n, 0, 0, 0);
	if (fd > 2)
		call(__NR_close, fd, 0, 0, 0, 0);
}

/* /modules/order: one file name a line, each after everything it depends on. */
static void load_modules(void)
{
	static char order[ORDER_LIMIT];
	long fd = call(__NR_open, (long)"/modules/order", O_RDONLY, 0, 0, 0);
	long size = fd < 0 ? fd : call(__NR_read, fd, (long)order, sizeof order - 1, 0, 0);

	if (size < 0 || size == sizeof order - 1)
		stop("cannot read", "/modules/order", size, damaged);
	call(__NR_close, fd, 0, 0, 0, 0);
	call(__NR_chdir, (long)"/modules", 0, 0, 0, 0);
	for (char *line = order; *line;) {
		char *end = line;
		long module, result;

		while (*end && *end != '\n')
			end++;
		if (*end)
			*end++ = 0;
		module = call(__NR_open, (long)line, O_RDONLY | O_CLOEXEC, 0, 0, 0);
		if (module < 0)
			stop("cannot open module", line, module, damaged);
		result = call(__NR_finit_module, module, (long)"", 0, 0, 0);
		if (result < 0 && result != -EEXIST)
			stop("cannot load module", line, result, "kernel and modules are not of the same build");
		call(__NR_close, module, 0, 0, 0, 0);
		call(__NR_unlink, (long)line, 0, 0, 0, 0);
		line = end;
	}
	call(__NR_unlink, (long)"order", 0, 0, 0, 0);
	call(__NR_chdir, (long)"/", 0, 0, 0, 0);
	call(__NR_rmdir, (long)"/modules", 0, 0, 0, 0);
}

/* A SquashFS file of the initramfs through a loop device; the file's name goes, its bytes stay as long as the mount. */
static void mount_image(const char *file, const char *target)
{
	static struct loop_config config;
	char path[40] = "/dev/loop", digits[24];
	long image, control, number, device, result;
	char *digit;
	word at = 9;

	image = call(__NR_open, (long)file, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (image < 0)
		stop("there is no", file, image, damaged);
	control = call(__NR_open, (long)"/dev/loop-control", O_RDWR | O_CLOEXEC, 0, 0, 0);
	number = control < 0 ? control : call(__NR_ioctl, control, LOOP_CTL_GET_FREE, 0, 0, 0);
	if (number < 0)
		stop("there is no loop device for", file, number, "the kernel lacks it");
	for (digit = decimal(number, digits + sizeof digits); *digit; digit++)
		path[at++] = *digit;
	path[at] = 0;
	device = call(__NR_open, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	config.fd = image;
	config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
	result = device < 0 ? device : call(__NR_ioctl, device, LOOP_CONFIGURE, (long)&config, 0, 0);
	if (result < 0)
		stop("cannot attach", file, result, "the kernel lacks a loop device");
	result = call(__NR_mount, (long)path, (long)target, (long)"squashfs", MS_RDONLY | MS_NODEV, 0);
	if (result < 0)
		stop("cannot mount", file, result, damaged);
	call(__NR_close, device, 0, 0, 0, 0);
	call(__NR_close, control, 0, 0, 0, 0);
	call(__NR_close, image, 0, 0, 0, 0);
	call(__NR_unlink, (long)file, 0, 0, 0, 0);
}

static void move(const char *from, const char *to)
{
	long result = call(__NR_mount, (long)from, (long)to, 0, MS_MOVE, 0);

	if (result < 0)
		stop("cannot move a mount to", to, result, damaged);
}

__attribute__((noreturn, used)) static void start(void)
{
	static const char *const arguments[] = { "/sbin/init", 0 };
	static const char *const environment[] = { "PATH=/usr/bin:/usr/sbin", "HOME=/", "TERM=linux", 0 };
	long result;

	mount_virtual("devtmpfs", "/dev", MS_NOSUID);
	open_console();
	mount_virtual("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
	mount_virtual("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC);
	load_modules();
	call(__NR_mkdir, (long)"/root", 0755, 0, 0, 0);
	mount_image("/rootfs.sqsh", "/root");
	mount_image("/modules.sqsh", "/root/usr/lib/modules");
	move("/dev", "/root/dev");
	move("/proc", "/root/proc");
	move("/sys", "/root/sys");
	call(__NR_unlink, (long)"/init", 0, 0, 0, 0);
	call(__NR_chdir, (long)"/root", 0, 0, 0, 0);
	move(".", "/");
	result = call(__NR_chroot, (long)".", 0, 0, 0, 0);
	if (result >= 0)
		result = call(__NR_execve, (long)arguments[0], (long)arguments, (long)environment, 0, 0);
	stop("cannot start", arguments[0], result, damaged);
}

/* The kernel leaves the stack aligned to 16 bytes, and a function expects a return address there. */
__asm__(".globl _start\n_start:\n\tcall start\n");
