/** A machine of its own in a test: it is started from a medium, installs itself, and is started from its disk. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock } from '../../../src/cosi/clock.ts'
import { readDiskTable } from '../../../src/os/block/device.ts'
import { Grub } from '../../../src/os/lifecycle/slots/grub.ts'
import { SystemdBoot } from '../../../src/os/lifecycle/slots/systemd-boot.ts'
import { release } from '../../../src/release.ts'
import { pause } from '../../../src/timing/pause.ts'
import { FatVolume } from '../../../src/wire/fat/volume.ts'
import { config } from '../../os/config/machine.ts'
import { installerLayout, releaseFiles, signingKey, tarOf, writeTree } from '../../os/lifecycle/release/installer.ts'
import { structure } from '../../wire/smbios-table.ts'
import type { Hardware } from './sandbox-hardware.ts'
import { begin, type Fails, never, problems, type SandboxNode } from './sandbox-node.ts'

const key = signingKey()
const medium = releaseFiles(release.tag, key)

/** An installer image of this version, as a client uploads it. */
export const installerImage = (version: string): Buffer => tarOf(installerLayout(releaseFiles(version, key)))

/** What a machine has beyond a container: a disk, a watchdog, modules, rules for udevd. */
export const machineConfig = (disk = '/dev/vda') => `${config(
  'controlplane',
  `
machine:
  time: { servers: [127.0.0.1] }
  install: { disk: ${disk} }
  kernel: { modules: [{ name: nbd }] }
  udev: { rules: ['KERNEL=="vda", GROUP="6"'] }
  features: { hostDNS: { enabled: false, forwardKubeDNSToHost: false }, kubePrism: { enabled: false } }
cluster: { discovery: { enabled: false } }`,
)}---
apiVersion: v1alpha1
kind: WatchdogTimerConfig
device: /dev/watchdog0
timeout: 1m
`

/** How a machine is started. */
export interface StartOptions {
  readonly from: 'medium' | 'disk'
  readonly fails?: Fails
  /** The configuration on the medium; none waits for one. */
  readonly config?: string
  /** Words of the kernel's command line in place of the usual ones. */
  readonly commandLine?: string
  /** The UUID in the firmware's description of the machine. */
  readonly uuid?: string
  /** Further files that stage 0 leaves or the kernel shows, by path. */
  readonly left?: Readonly<Record<string, string | Uint8Array>>
  /** The kernel does not say how much memory there is, so that keys are derived at the least cost. */
  uncounted?: boolean
}

const usualCommandLine =
  'talos.platform=metal slab_nomerge pti=on console=ttyS0 talos.config=none talos.dashboard.disabled=1 ip=10.9.0.2::10.9.0.1:255.255.255.0:one:eth0:off:127.0.0.1::127.0.0.1'

/** The structure "System Information" with a UUID, of which SMBIOS stores the first three parts little endian. */
function systemStructure(uuid: string): Uint8Array {
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex')
  for (const [from, to] of [
    [0, 4],
    [4, 6],
    [6, 8],
  ] as const)
    bytes.subarray(from, to).reverse()
  return structure(1, [1, 2, 0, 0, ...bytes, 6, 0, 0], ['maker', 'product'])
}

/** Turns the power on. */
export const startMachine = (
  hardware: Hardware,
  { from, fails, config: given, commandLine = usualCommandLine, uuid, left = {}, uncounted = false }: StartOptions,
): Promise<SandboxNode> =>
  begin({
    hardware,
    fails,
    disk(root) {
      const put = (path: string, text: string | Uint8Array) => {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(join(root, path), text)
      }
      put('proc/cmdline', `${commandLine}${from === 'disk' ? ' ichor.slot=a' : ''}\n`)
      put('proc/modules', 'nbd 61440 0 - Live 0x0000000000000000\n')
      if (uncounted) put('proc/meminfo', '')
      if (uuid) put('sys/firmware/dmi/tables/DMI', Buffer.concat([systemStructure(uuid), structure(127, [], [])]))
      put('run/ichor/key.pub', key.publicKey)
      put('run/ichor/source', from === 'disk' ? '/dev/vda1 vfat\n' : '/dev/sr0 iso9660\n')
      put('usr/lib/modules/6.18.0/modules.dep', 'kernel/drivers/block/nbd.ko:\nkernel/fs/fuse/fuse.ko:\n')
      put('usr/lib/modules/6.18.0/modules.builtin', 'kernel/fs/ext4/ext4.ko\n')
      put('usr/share/ichor/hot-plug-modules', 'fuse\n')
      // What generated files are mounted over.
      for (const name of ['hosts', 'resolv.conf', 'hostname', 'machine-id', 'localtime', 'ssl/certs/ca-certificates.crt'])
        put(`etc/${name}`, '')
      for (const folder of [
        'etc/cri',
        'etc/iscsi',
        'etc/nvme',
        'opt',
        'etc/cni',
        'etc/kubernetes',
        'usr/libexec/kubernetes',
        'usr/local',
        'dev',
      ])
        mkdirSync(join(root, folder), { recursive: true })
      for (const [path, text] of Object.entries(left)) put(path.slice(1), text)
      if (given) put('usr/local/etc/talos/config.yaml', given)
      if (from === 'medium') writeTree(join(root, 'run/ichor/medium/usr/install', release.arch), medium)
    },
  })

/** Waits until a machine ends; throws what it is at when that takes too long. */
export async function ended(here: SandboxNode): Promise<string[]> {
  const end = systemClock.deadline(40_000)
  while (here.ends.length === 0) {
    if (end.over)
      throw new Error(
        `the machine does not end: ${JSON.stringify({ at: here.machine.sequencer.running, fired: here.fired, log: problems(here) })}`,
      )
    await pause(5, never)
  }
  await here.stop()
  return here.ends
}

/** Labels of the partitions on a disk, and whether the slot that was installed starts. */
export async function installedOn(hardware: Hardware): Promise<{ labels: string[]; next: string | undefined }> {
  const table = await readDiskTable(hardware.open('/dev/vda'))
  const labels = table?.partitions.map(({ name }) => name) ?? []
  const boot = labels.includes('BOOT') ? 'BOOT' : 'EFI'
  const partition = table?.partitions.find(({ name }) => name === boot)
  if (!partition) return { labels, next: undefined }
  const volume = await FatVolume.open(hardware.open(`/dev/vda${partition.index}`))
  const { next } = await (boot === 'BOOT' ? new Grub(volume) : new SystemdBoot(volume)).state()
  return { labels, next }
}
