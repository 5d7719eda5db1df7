import * as acpi from '../../linux/acpi.ts'
import * as block from '../../linux/block.ts'
import * as capabilities from '../../linux/capabilities.ts'
import * as capture from '../../linux/capture.ts'
import * as cgroup from '../../linux/cgroup.ts'
import * as screens from '../../linux/console.ts'
import * as efi from '../../linux/efi-variables.ts'
import * as ethtool from '../../linux/ethtool.ts'
import * as fifo from '../../linux/fifo.ts'
import * as files from '../../linux/files.ts'
import * as kmsg from '../../linux/kmsg.ts'
import * as modules from '../../linux/modules.ts'
import * as mount from '../../linux/mount.ts'
import * as net from '../../linux/net.ts'
import * as nftables from '../../linux/nftables.ts'
import * as packet from '../../linux/packet.ts'
import * as processes from '../../linux/process.ts'
import * as rebooting from '../../linux/reboot.ts'
import * as socket from '../../linux/socket.ts'
import * as sysctl from '../../linux/sysctl.ts'
import * as time from '../../linux/time.ts'
import * as uevent from '../../linux/uevent.ts'
import * as uts from '../../linux/uts.ts'
import * as watchdog from '../../linux/watchdog.ts'
import * as wireguard from '../../linux/wireguard.ts'
import * as xattr from '../../linux/xattr.ts'
import type { Kernel } from '../../os/kernel.ts'

/** The kernel of this machine: every module of linux/ by its subject. */
export const kernelOf = (mode: Kernel['mode']): Kernel => ({
  mode,
  files,
  xattr,
  modules,
  block,
  uevent,
  mount,
  uts,
  net,
  packet,
  capture,
  ethtool,
  wireguard,
  nftables,
  process: processes,
  cgroup,
  sysctl,
  kmsg,
  time,
  capabilities,
  fifo,
  efi,
  reboot: rebooting,
  socket,
  acpi,
  console: screens,
  watchdog,
})
