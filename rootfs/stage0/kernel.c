/* System calls, texts, and giving up. */
#include "stage0.h"

#include <linux/mount.h>
#include <linux/reboot.h>

const char damaged[] = "the image is damaged or incomplete: write the medium again, or download the image again";

#ifdef __aarch64__
long call(long number, long a, long b, long c, long d, long e)
{
	register long which __asm__("x8") = number;
	register long first __asm__("x0") = a;
	register long second __asm__("x1") = b;
	register long third __asm__("x2") = c;
	register long fourth __asm__("x3") = d;
	register long fifth __asm__("x4") = e;

	__asm__ volatile("svc #0"
			 : "+r"(first)
			 : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
			 : "memory");
	return first;
}
#else
long call(long number, long a, long b, long c, long d, long e)
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
#endif

/* The compiler calls these two by itself, too. */
void *memset(void *to, int value, word size)
{
	char *at = to;

	while (size--)
		*at++ = value;
	return to;
}

void *memcpy(void *to, const void *from, word size)
{
	char *at = to;
	const char *source = from;

	while (size--)
		*at++ = *source++;
	return to;
}

long open_file(const char *path, int flags)
{
	return CALL_OPEN(path, flags, 0600);
}

void close_file(long fd)
{
	if (fd >= 0)
		call(__NR_close, fd, 0, 0, 0, 0);
}

long make_folder(const char *path, int mode)
{
	return CALL_MKDIR(path, mode);
}

long mount_on(const char *source, const char *target, const char *type, word flags, const char *data)
{
	return call(__NR_mount, (long)source, (long)target, (long)type, flags, (long)data);
}

void pause_for(long milliseconds)
{
	struct { long seconds, nanoseconds; } time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	call(__NR_nanosleep, (long)&time, 0, 0, 0, 0);
}

/* Since power-on, by the clock that nobody sets. */
long seconds_up(void)
{
	struct { long seconds, nanoseconds; } time = { 0, 0 };

	call(__NR_clock_gettime, 1, (long)&time, 0, 0, 0);
	return time.seconds;
}

word length_of(const char *text)
{
	word n = 0;

	while (text[n])
		n++;
	return n;
}

int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

int starts(const char *text, const char *with)
{
	while (*with && *text == *with)
		text++, with++;
	return !*with;
}

void add(struct text *to, const char *what)
{
	for (; *what; what++) {
		if (to->length == sizeof to->at - 1) {
			to->full = 1;
			break;
		}
		to->at[to->length++] = *what;
	}
	to->at[to->length] = 0;
}

void add_number(struct text *to, word number)
{
	char digits[24], *at = digits + sizeof digits;

	*--at = 0;
	do
		*--at = '0' + number % 10;
	while (number /= 10);
	add(to, at);
}

word number_at(const char **text)
{
	word number = 0;

	while (**text >= '0' && **text <= '9')
		number = number * 10 + *(*text)++ - '0';
	return number;
}

long read_text(const char *path, char *into, word size)
{
	long fd = open_file(path, O_RDONLY_CLOEXEC);
	word have = 0;
	long got = 1;

	if (fd < 0)
		return fd;
	while (have < size && (got = call(__NR_read, fd, (long)into + have, size - have, 0, 0)) > 0)
		have += got;
	close_file(fd);
	if (got < 0)
		return got;
	if (have == size)
		return -1;
	into[have] = 0;
	return have;
}

const char *parameter(const char *name)
{
	static char line[4096];
	const char *found = 0;

	if (read_text("/proc/cmdline", line, sizeof line) > 0)
		for (const char *at = line; *at; at++)
			if ((at == line || at[-1] == ' ') && starts(at, name))
				found = at + length_of(name);
	return found;
}

void write_text(const char *path, const char *text)
{
	long fd = CALL_OPEN(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	word size = length_of(text);
	long result = fd < 0 ? fd : call(__NR_write, fd, (long)text, size, 0, 0);

	close_file(fd);
	if (result != (long)size)
		stop("cannot write", path, result, "the machine has too little memory");
}

static void put_line(const struct text *line)
{
	/* The kernel's log shows on every console; without it there is at least this one. */
	long log = open_file("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	long written = log < 0 ? log : call(__NR_write, log, (long)line->at, line->length, 0, 0);

	close_file(log);
	if (written < 0)
		call(__NR_write, 2, (long)line->at, line->length, 0, 0);
}

void say(const char *a, const char *b, const char *c, const char *d)
{
	static struct text line;

	line.length = 0;
	add(&line, "<4>[stage0] "); /* KERN_WARNING, so that it is shown with the parameter `quiet`, too */
	add(&line, a);
	add(&line, b);
	add(&line, c);
	add(&line, d);
	add(&line, "\n");
	put_line(&line);
}

__attribute__((noreturn)) void stop(const char *what, const char *subject, long result, const char *way_out)
{
	static struct text why;
	const char *panic = parameter("panic=");
	int halts = panic && *panic == '0' && (panic[1] == ' ' || panic[1] == '\n' || !panic[1]);

	add(&why, "the machine cannot start: ");
	add(&why, what);
	add(&why, " ");
	add(&why, subject);
	if (result < 0) {
		add(&why, ": error ");
		add_number(&why, -result);
	}
	say(why.at, "; ", way_out, halts ? ". It halts, as panic=0 requests." : ". It starts again in one minute.");
	if (!halts)
		pause_for(60000);
	for (;;)
		call(__NR_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, halts ? LINUX_REBOOT_CMD_HALT : LINUX_REBOOT_CMD_RESTART, 0, 0);
}

struct entry {
	word inode, offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

long each_entry(const char *folder, long (*found)(const char *folder, const char *name))
{
	char entries[2048] __attribute__((aligned(8)));
	long fd = open_file(folder, O_RDONLY_CLOEXEC | O_DIRECTORY);
	long got, result = 0;

	if (fd < 0)
		return 0;
	while (!result && (got = call(__NR_getdents64, fd, (long)entries, sizeof entries, 0, 0)) > 0)
		for (long at = 0; at < got && !result;) {
			const struct entry *entry = (const struct entry *)(entries + at);

			if (!same(entry->name, ".") && !same(entry->name, ".."))
				result = found(folder, entry->name);
			at += entry->length;
		}
	close_file(fd);
	return result;
}
