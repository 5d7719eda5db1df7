package specconv

import (
	"strings"

	"github.com/opencontainers/selinux/go-selinux"
)

// processLabel is the SELinux label of a container's processes: the given one, and for containers of the machine's containerds that
// have none, as privileged ones and those that hold a pod's namespaces, that of pods. No container runs as the daemon.
func processLabel(given string) string {
	if given != "" || !selinux.GetEnabled() {
		return given
	}
	own, err := selinux.CurrentLabel()
	if err != nil || !strings.HasPrefix(own, "system_u:system_r:") || !strings.HasSuffix(own, "_containerd_t:s0") {
		return given
	}
	return "system_u:system_r:pod_t:s0"
}
