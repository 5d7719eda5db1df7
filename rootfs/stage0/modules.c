/*
 * The modules that reading the root may take. /modules/list has one a line, each after everything it depends on:
 * `file.ko`, then `!` when it is always needed, `<number>` for each line it depends on, and `=pattern` for each name that
 * devices give themselves (modules.alias(5)) and that this module serves.
 */
#include "stage0.h"

#define LIST_LIMIT (1 << 20)
#define MODULE_LIMIT 512

static char list[LIST_LIMIT];
static char *lines[MODULE_LIMIT];
static char done[MODULE_LIMIT];
static long count;

void read_modules(void)
{
	long size = read_text("/modules/list", list, sizeof list);

	if (size < 0)
		stop("cannot read", "/modules/list", size, damaged);
	for (char *at = list; *at;) {
		if (count == MODULE_LIMIT)
			stop("too many modules in", "/modules/list", 0, damaged);
		lines[count++] = at;
		while (*at && *at != '\n')
			at++;
		if (*at)
			*at++ = 0;
	}
}

/* The word after this one, or the end of the line. */
static const char *next_word(const char *at)
{
	while (*at && *at != ' ')
		at++;
	return *at ? at + 1 : at;
}

static void load(long number, int needed)
{
	struct text path = { .length = 0 };
	const char *end = lines[number];
	long module, result;

	if (done[number])
		return;
	done[number] = 1;
	add(&path, "/modules/");
	while (*end && *end != ' ' && path.length < sizeof path.at - 1)
		path.at[path.length++] = *end++;
	path.at[path.length] = 0;
	for (const char *word = next_word(lines[number]); *word; word = next_word(word))
		if (*word >= '0' && *word <= '9') {
			const char *digits = word;
			long before = number_at(&digits);

			if (before < number)
				load(before, needed);
		}
	module = open_file(path.at, O_RDONLY_CLOEXEC);
	if (module < 0)
		stop("cannot open module", path.at, module, damaged);
	result = call(__NR_finit_module, module, (long)"", 0, 0, 0);
	close_file(module);
	/* ENODEV: the processor lacks the instructions that the module uses. */
	if (result >= 0 || result == -E_EXIST || result == -E_NODEV)
		return;
	if (needed)
		stop("cannot load module", path.at, result, "kernel and modules are not of the same build");
	say("module ", path.at, " cannot be loaded, going on without", "");
}

void load_needed_modules(void)
{
	for (long number = 0; number < count; number++)
		if (*next_word(lines[number]) == '!')
			load(number, 1);
}

/* fnmatch(3) with `*`, `?` and `[...]`; a pattern ends at a space, too. */
static int matches(const char *pattern, const char *text)
{
	const char *retry = 0, *from = 0;

	for (;;) {
		int fits = 0;
		const char *next = pattern + 1;

		if (*pattern == '*') {
			retry = ++pattern;
			from = text;
			continue;
		}
		if (!*text)
			return !*pattern || *pattern == ' ';
		if (*pattern == '[') {
			for (; *next && *next != ' ' && *next != ']'; next++) {
				if (next[1] == '-' && next[2] && next[2] != ']') {
					fits |= *text >= next[0] && *text <= next[2];
					next += 2;
				} else
					fits |= *text == *next;
			}
			next += *next == ']';
		} else if (*pattern && *pattern != ' ')
			fits = *pattern == '?' || *pattern == *text;
		if (fits) {
			pattern = next;
			text++;
		} else if (retry) {
			pattern = retry;
			text = ++from;
		} else
			return 0;
	}
}

static void load_for(const char *device)
{
	for (long number = 0; number < count; number++) {
		if (done[number])
			continue;
		for (const char *word = next_word(lines[number]); *word; word = next_word(word))
			if (*word == '=' && matches(word + 1, device)) {
				load(number, 0);
				break;
			}
	}
}

static long look_at_device(const char *folder, const char *name)
{
	struct text path = { .length = 0 };
	char device[512];
	long size;

	add(&path, folder);
	add(&path, "/");
	add(&path, name);
	add(&path, "/modalias");
	if (path.full)
		return 0;
	size = read_text(path.at, device, sizeof device);
	if (size <= 0)
		return 0;
	for (long at = 0; at < size; at++)
		if (device[at] == '\n')
			device[at] = 0;
	load_for(device);
	return 0;
}

static long look_at_bus(const char *folder, const char *name)
{
	struct text path = { .length = 0 };

	add(&path, folder);
	add(&path, "/");
	add(&path, name);
	add(&path, "/devices");
	if (!path.full)
		each_entry(path.at, look_at_device);
	return 0;
}

void load_modules_of_devices(void)
{
	each_entry("/sys/bus", look_at_bus);
}

static long forget(const char *folder, const char *name)
{
	struct text path = { .length = 0 };

	add(&path, folder);
	add(&path, "/");
	add(&path, name);
	CALL_UNLINK(path.at);
	return 0;
}

/* The initramfs stays in memory below the root: what it no longer needs is given back. */
void forget_modules(void)
{
	each_entry("/modules", forget);
	CALL_RMDIR("/modules");
}
