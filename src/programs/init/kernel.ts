import * as block from '../../linux/block/device.ts'
import * as mapper from '../../linux/block/device-mapper.ts'
import * as acpi from '../../linux/device/acpi.ts'
import * as screens from '../../linux/device/console.ts'
import * as efi from '../../linux/device/efi-variables.ts'
import * as tpm from '../../linux/device/tpm.ts'
import * as uevent from '../../linux/device/uevent.ts'
import * as watchdog from '../../linux/device/watchdog.ts'
import * as fifo from '../../linux/fs/fifo.ts'
import * as files from '../../linux/fs/files.ts'
import * as mount from '../../linux/fs/mount.ts'
import * as xattr from '../../linux/fs/xattr.ts'
import * as audit from '../../linux/net/audit.ts'
import * as capture from '../../linux/net/capture.ts'
import * as ethtool from '../../linux/net/ethtool.ts'
import * as nftables from '../../linux/net/nftables.ts'
import * as packet from '../../linux/net/packet.ts'
import * as net from '../../linux/net/rtnetlink.ts'
import * as socket from '../../linux/net/socket.ts'
import * as wireguard from '../../linux/net/wireguard.ts'
import * as capabilities from '../../linux/process/capabilities.ts'
import * as cgroup from '../../linux/process/cgroup.ts'
import * as processes from '../../linux/process/process.ts'
import * as selinux from '../../linux/process/selinux.ts'
import * as kmsg from '../../linux/system/kmsg.ts'
import * as modules from '../../linux/system/modules.ts'
import * as rebooting from '../../linux/system/reboot.ts'
import * as sysctl from '../../linux/system/sysctl.ts'
import * as time from '../../linux/system/time.ts'
import * as uts from '../../linux/system/uts.ts'
import type { Kernel } from '../../os/kernel.ts'

/** The kernel of this machine: every module of linux/ by its subject. */
export const kernelOf = (mode: Kernel['mode']): Kernel => ({
  mode,
  files,
  xattr,
  modules,
  block,
  mapper,
  uevent,
  mount,
  uts,
  net,
  packet,
  audit,
  capture,
  ethtool,
  wireguard,
  nftables,
  process: processes,
  selinux,
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
  tpm,
})
