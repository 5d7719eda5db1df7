/* What the parts of stage 0 share: system calls without a C library, small texts, and the way to give up. */
#ifndef STAGE0_H
#define STAGE0_H

#include <asm/unistd.h>
#include <linux/fcntl.h>

typedef unsigned long word;

/* Of <errno.h>, which needs a C library. */
#define E_NOENT 2
#define E_EXIST 17
#define E_BUSY 16
#define E_NODEV 19
#define O_RDONLY_CLOEXEC (O_RDONLY | O_CLOEXEC)

/* A path or a line being written; what does not fit is dropped, and `full` is set. */
struct text {
	char at[512];
	word length;
	int full;
};

/* The root file system to start, as described in /ichor/root. */
struct root {
	char hash[65], salt[65], name[32];
	word data_blocks, blocks;
};

void *memset(void *to, int value, word size);
void *memcpy(void *to, const void *from, word size);
long call(long number, long a, long b, long c, long d, long e);

/* Calls that arm64 has only with the descriptor of a folder (include/uapi/asm-generic/unistd.h). */
#ifdef __aarch64__
#define AT_REMOVEDIR 0x200
#define CALL_OPEN(path, flags, mode) call(__NR_openat, AT_FDCWD, (long)(path), flags, mode, 0)
#define CALL_MKDIR(path, mode) call(__NR_mkdirat, AT_FDCWD, (long)(path), mode, 0, 0)
#define CALL_UNLINK(path) call(__NR_unlinkat, AT_FDCWD, (long)(path), 0, 0, 0)
#define CALL_RMDIR(path) call(__NR_unlinkat, AT_FDCWD, (long)(path), AT_REMOVEDIR, 0, 0)
#define CALL_DUP2(from, to) ((from) == (to) ? (to) : call(__NR_dup3, from, to, 0, 0, 0))
#else
#define CALL_OPEN(path, flags, mode) call(__NR_open, (long)(path), flags, mode, 0, 0)
#define CALL_MKDIR(path, mode) call(__NR_mkdir, (long)(path), mode, 0, 0, 0)
#define CALL_UNLINK(path) call(__NR_unlink, (long)(path), 0, 0, 0, 0)
#define CALL_RMDIR(path) call(__NR_rmdir, (long)(path), 0, 0, 0, 0)
#define CALL_DUP2(from, to) call(__NR_dup2, from, to, 0, 0, 0)
#endif

long open_file(const char *path, int flags);
void close_file(long fd);
long make_folder(const char *path, int mode);
long mount_on(const char *source, const char *target, const char *type, word flags, const char *data);
void pause_for(long milliseconds);
long seconds_up(void);

word length_of(const char *text);
int same(const char *a, const char *b);
int starts(const char *text, const char *with);
void add(struct text *to, const char *what);
void add_number(struct text *to, word number);
word number_at(const char **text);
/* Reads a whole file of the initramfs or of sysfs; the bytes end with a zero. Negative when it cannot or does not fit. */
long read_text(const char *path, char *into, word size);

/* What follows a name of the kernel command line, like `panic=`, the last time it is there; 0 when it is not. */
const char *parameter(const char *name);

/* Creates a file that everyone may read, or stops the start. */
void write_text(const char *path, const char *text);

/* Lines on every console, after `[stage0] `. */
void say(const char *a, const char *b, const char *c, const char *d);
/* Prints one line with the cause and the remedy, and restarts the machine after one minute; with `panic=0` it halts. */
__attribute__((noreturn)) void stop(const char *what, const char *subject, long result, const char *way_out);
extern const char damaged[];

/* Measures a phase of the start, and keeps the policy of the image in a folder. */
void measure(const char *phase);
void keep_policy(const char *folder);

/* Loads the SELinux policy of the root on /root, where the kernel uses SELinux; the next program that is executed runs as init. */
void load_policy(void);

/* Loads what is always needed, then whatever the machine's devices ask for that was not loaded yet. */
void read_modules(void);
void load_needed_modules(void);
void load_modules_of_devices(void);
void forget_modules(void);

/* Calls `found` with the name of each entry of a folder but `.` and `..`, until it gives something else than 0. */
long each_entry(const char *folder, long (*found)(const char *folder, const char *name));

/* Attaches an open file to a loop device; gives its number or an error. */
long attach_loop(long image);
void detach_loop(long number);

/* Sets up the verified device over a loop device at /dev/dm-0; the second makes a damaged block the end of this start. */
long verify_loop(const struct root *root, long loop);
long verify_strictly(const struct root *root, long loop);
void forget_verified(void);

/* Finds the root file system and mounts it on /root; the medium that holds it, if any, stays on /medium. */
void find_root(const struct root *root, struct text *source);

#endif
