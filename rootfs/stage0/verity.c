/* The root's blocks are compared with a tree of hashes as they are read: dm-verity, set up through device mapper's calls. */
#include "stage0.h"

#include <linux/types.h>
#include <linux/ioctl.h>
#include <linux/dm-ioctl.h>
#include <linux/loop.h>

#define DEVICE "ichor-root"

long attach_loop(long image)
{
	static struct loop_config config;
	struct text path = { .length = 0 };
	long control = open_file("/dev/loop-control", O_RDWR | O_CLOEXEC);
	long number = control < 0 ? control : call(__NR_ioctl, control, LOOP_CTL_GET_FREE, 0, 0, 0);
	long device, result;

	close_file(control);
	if (number < 0)
		return number;
	add(&path, "/dev/loop");
	add_number(&path, number);
	device = open_file(path.at, O_RDONLY_CLOEXEC);
	if (device < 0)
		return device;
	config.fd = image;
	config.info.lo_flags = LO_FLAGS_READ_ONLY;
	result = call(__NR_ioctl, device, LOOP_CONFIGURE, (long)&config, 0, 0);
	close_file(device);
	return result < 0 ? result : number;
}

void detach_loop(long number)
{
	struct text path = { .length = 0 };
	long device;

	add(&path, "/dev/loop");
	add_number(&path, number);
	device = open_file(path.at, O_RDONLY_CLOEXEC);
	if (device >= 0)
		call(__NR_ioctl, device, LOOP_CLR_FD, 0, 0, 0);
	close_file(device);
}

static struct {
	struct dm_ioctl head;
	struct dm_target_spec target;
	char parameters[1024];
} request;

static long ask(long command, unsigned int flags)
{
	long control = open_file("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	long result;

	if (control < 0)
		return control;
	request.head.version[0] = 4;
	request.head.version[1] = 0;
	request.head.version[2] = 0;
	request.head.data_size = sizeof request;
	request.head.data_start = sizeof request.head;
	request.head.flags = flags;
	request.head.dev = 0;
	memcpy(request.head.name, DEVICE, sizeof DEVICE);
	result = call(__NR_ioctl, control, command, (long)&request, 0, 0);
	close_file(control);
	return result;
}

#ifdef __x86_64__
static void cpuid(unsigned int leaf, unsigned int *registers)
{
	__asm__ volatile("cpuid"
		: "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
		: "a"(leaf), "c"(0));
}

/* Whether a program translates each instruction: QEMU without KVM, by the name that it gives (CPUID, leaf 0x40000000). */
static int emulated(void)
{
	/* The last one ends the name, which the three before it hold. */
	unsigned int registers[5] = { 0 };

	cpuid(1, registers);
	if (!(registers[2] >> 31))
		return 0;
	cpuid(0x40000000, registers);
	return same((const char *)(registers + 1), "TCGTCGTCGTCG");
}
#else
static int emulated(void)
{
	return 0;
}
#endif

/*
 * The kernel prefers SHA-256 in the widest instructions that a processor has. Where those are translated into many others the plain
 * one is faster, and a start has tens of megabytes to verify.
 */
static const char *hash_name(void)
{
	return emulated() ? " sha256-generic " : " sha256 ";
}

/* `1 <device> <hash device> 4096 4096 <blocks> <first hash block> <hash> <root> <salt>` (Documentation/.../verity.rst). */
static long load_table(const struct root *root, long loop, const char *options)
{
	struct text table = { .length = 0 };

	add(&table, "1 7:");
	add_number(&table, loop);
	add(&table, " 7:");
	add_number(&table, loop);
	add(&table, " 4096 4096 ");
	add_number(&table, root->data_blocks);
	add(&table, " ");
	add_number(&table, root->data_blocks);
	add(&table, hash_name());
	add(&table, root->hash);
	add(&table, " ");
	add(&table, root->salt);
	add(&table, options);
	memset(&request, 0, sizeof request);
	request.head.target_count = 1;
	request.target.sector_start = 0;
	request.target.length = root->data_blocks * 8;
	memcpy(request.target.target_type, "verity", sizeof "verity");
	memcpy(request.parameters, table.at, table.length + 1);
	return ask(DM_TABLE_LOAD, DM_READONLY_FLAG);
}

static long resume(void)
{
	memset(&request, 0, sizeof request);
	return ask(DM_DEV_SUSPEND, 0);
}

void forget_verified(void)
{
	memset(&request, 0, sizeof request);
	ask(DM_DEV_REMOVE, 0);
}

long verify_loop(const struct root *root, long loop)
{
	long result;

	memset(&request, 0, sizeof request);
	result = ask(DM_DEV_CREATE, DM_READONLY_FLAG);
	if (result < 0)
		return result;
	result = load_table(root, loop, "");
	if (result >= 0)
		result = resume();
	if (result < 0)
		forget_verified();
	return result;
}

long verify_strictly(const struct root *root, long loop)
{
	long result = load_table(root, loop, " 1 panic_on_corruption");

	return result < 0 ? result : resume();
}
