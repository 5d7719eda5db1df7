/**
 * The kernel as the areas see it: modules of linux/ passed in by init. Types only, so that an import opens nothing; tests pass an
 * object with the few calls they expect.
 */

/** Where this node runs: in a container on another machine, or on a machine of its own. */
export type Mode = 'container' | 'metal'

/** The kernel's interfaces, one per subject. */
export interface Kernel {
  readonly mode: Mode
  readonly files: typeof import('../linux/fs/files.ts')
  readonly xattr: typeof import('../linux/fs/xattr.ts')
  readonly modules: typeof import('../linux/system/modules.ts')
  readonly block: typeof import('../linux/block/device.ts')
  readonly mapper: typeof import('../linux/block/device-mapper.ts')
  readonly uevent: typeof import('../linux/device/uevent.ts')
  readonly mount: typeof import('../linux/fs/mount.ts')
  readonly uts: typeof import('../linux/system/uts.ts')
  readonly net: typeof import('../linux/net/rtnetlink.ts')
  readonly packet: typeof import('../linux/net/packet.ts')
  readonly audit: typeof import('../linux/net/audit.ts')
  readonly capture: typeof import('../linux/net/capture.ts')
  readonly ethtool: typeof import('../linux/net/ethtool.ts')
  readonly wireguard: typeof import('../linux/net/wireguard.ts')
  readonly nftables: typeof import('../linux/net/nftables.ts')
  readonly process: typeof import('../linux/process/process.ts')
  readonly selinux: typeof import('../linux/process/selinux.ts')
  readonly cgroup: typeof import('../linux/process/cgroup.ts')
  readonly sysctl: typeof import('../linux/system/sysctl.ts')
  readonly kmsg: typeof import('../linux/system/kmsg.ts')
  readonly time: typeof import('../linux/system/time.ts')
  readonly capabilities: typeof import('../linux/process/capabilities.ts')
  readonly fifo: typeof import('../linux/fs/fifo.ts')
  readonly efi: typeof import('../linux/device/efi-variables.ts')
  readonly reboot: typeof import('../linux/system/reboot.ts')
  readonly socket: typeof import('../linux/net/socket.ts')
  readonly acpi: typeof import('../linux/device/acpi.ts')
  readonly console: typeof import('../linux/device/console.ts')
  readonly watchdog: typeof import('../linux/device/watchdog.ts')
  readonly tpm: typeof import('../linux/device/tpm.ts')
}
