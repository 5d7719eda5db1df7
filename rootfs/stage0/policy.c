/* Gives the kernel the SELinux policy of the root file system, where `security=selinux` on the command line has made it use SELinux. */
#include "stage0.h"

#include <linux/mount.h>

#define POLICY "/root/usr/share/ichor/selinux.policy"

static const char way_out[] = "write the medium again, or start it without security=selinux, unprotected by it";

/* Twice the limit of the build. */
static char policy[400000];

/* Both files take their content in one write. */
static void write_whole(const char *path, const char *bytes, word size)
{
	long fd = open_file(path, O_WRONLY | O_CLOEXEC);
	long result = fd < 0 ? fd : call(__NR_write, fd, (long)bytes, size, 0, 0);

	close_file(fd);
	if (result != (long)size)
		stop("cannot load the SELinux policy: write to", path, result, way_out);
}

void load_policy(void)
{
	static const char init[] = "system_u:system_r:init_t:s0";
	const char *enforcing = parameter("enforcing=");
	long size, result = mount_on("selinuxfs", "/sys/fs/selinux", "selinuxfs", MS_NOSUID | MS_NOEXEC, 0);

	/* The kernel has this file system and a place for it only while it uses SELinux. */
	if (result == -E_NOENT || result == -E_NODEV) {
		if (enforcing && *enforcing == '1')
			stop("cannot enforce", "an SELinux policy", 0, "the kernel does not use SELinux: add security=selinux, or leave out enforcing=1");
		return;
	}
	if (result < 0)
		stop("cannot mount", "/sys/fs/selinux", result, way_out);
	size = read_text(POLICY, policy, sizeof policy);
	if (size <= 0)
		stop("cannot read", POLICY, size, damaged);
	write_whole("/sys/fs/selinux/load", policy, size);
	write_whole("/proc/self/attr/exec", init, sizeof init - 1);
	say("SELinux policy loaded, ", enforcing && *enforcing == '1' ? "enforcing" : "permissive: what it would deny is only reported", "", "");
}
