/**
 * The kernel as the areas see it: modules of linux/ handed in by init. Types only, so that naming one opens nothing;
 * a test hands in an object of the few calls it expects.
 */

/** Where this node runs: in a container of another machine, or on a machine of its own. */
export type Mode = 'container' | 'metal'

/** The kernel's doors, one a subject. */
export interface Kernel {
  readonly mode: Mode
  readonly files: typeof import('../linux/files.ts')
  readonly xattr: typeof import('../linux/xattr.ts')
  readonly modules: typeof import('../linux/modules.ts')
  readonly block: typeof import('../linux/block.ts')
  readonly uevent: typeof import('../linux/uevent.ts')
  readonly mount: typeof import('../linux/mount.ts')
  readonly uts: typeof import('../linux/uts.ts')
  readonly net: typeof import('../linux/net.ts')
  readonly packet: typeof import('../linux/packet.ts')
  readonly capture: typeof import('../linux/capture.ts')
  readonly ethtool: typeof import('../linux/ethtool.ts')
  readonly wireguard: typeof import('../linux/wireguard.ts')
  readonly nftables: typeof import('../linux/nftables.ts')
  readonly process: typeof import('../linux/process.ts')
  readonly cgroup: typeof import('../linux/cgroup.ts')
  readonly sysctl: typeof import('../linux/sysctl.ts')
  readonly kmsg: typeof import('../linux/kmsg.ts')
  readonly time: typeof import('../linux/time.ts')
  readonly capabilities: typeof import('../linux/capabilities.ts')
  readonly fifo: typeof import('../linux/fifo.ts')
  readonly efi: typeof import('../linux/efi-variables.ts')
  readonly reboot: typeof import('../linux/reboot.ts')
  readonly socket: typeof import('../linux/socket.ts')
  readonly acpi: typeof import('../linux/acpi.ts')
  readonly console: typeof import('../linux/console.ts')
  readonly watchdog: typeof import('../linux/watchdog.ts')
}
