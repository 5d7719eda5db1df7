/** What has to be right on this host before anything is made; each thing that is not is one line with the way out. */

import { existsSync, mkdirSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { mounts } from '../../../../linux/fs/mount.ts'
import { canRunInUserSpace, hasWireguard } from '../../../../linux/net/wireguard.ts'
import { hierarchy } from '../../../../linux/process/cgroup.ts'
import { formatPrefix, type Prefix } from '../../../../wire/prefix.ts'
import { type ClusterRecord, networksOf, readCluster } from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'
import { type Networks, parseCidr } from './cidr.ts'
import type { ExposedPort } from './exposed-ports.ts'
import { clash, freeNetwork, type HostNetwork, hostNetworks } from './networks.ts'
import { isFree } from './ports.ts'

const gib = 1024 ** 3
// A node's first start writes under 1 GiB: images that were pulled, etcd, logs.
const diskPerNode = 1 * gib

/** Containers need root. */
export function checkRoot(uid = process.geteuid?.() ?? 0, platform: string = process.platform): void {
  if (platform !== 'linux') throw new UsageError(`the container provisioner runs on Linux only, this is ${platform}`)
  if (uid !== 0) throw new UsageError('container nodes need root: run the same command with sudo')
}

/** The kernel has to know the file systems that nodes are made of. */
export function checkKernel(filesystems = readFileSync('/proc/filesystems', 'utf8'), modules = knownModules()): void {
  for (const [name, why] of [
    ['overlay', 'containers in a node are layers of it'],
    ['squashfs', "the nodes' root is one"],
  ] as const) {
    const known = filesystems.split('\n').some((line) => line.trim().split(/\s+/).at(-1) === name) || modules.has(name)
    if (!known)
      throw new UsageError(`this kernel has no ${name} file system (${why}): load it with "modprobe ${name}" or run a kernel that has it`)
  }
  try {
    hierarchy()
  } catch {
    throw new UsageError('no control groups are mounted: mount them with "mount -t cgroup2 none /sys/fs/cgroup"')
  }
}

/** Containers have their host's kernel: a mesh needs its WireGuard, or its TUN device for one in user space. */
export function checkMesh(has: () => boolean = () => hasWireguard() || canRunInUserSpace()): void {
  if (!has())
    throw new UsageError(
      '--with-kubespan: this kernel has neither WireGuard nor /dev/net/tun: load one with "modprobe wireguard" or "modprobe tun"',
    )
}

/** The image is attached to a loop device, which there must be. */
export function checkLoop(devices = readdirSync('/dev')): void {
  if (!devices.includes('loop-control')) {
    throw new UsageError('there is no /dev/loop-control: load the module with "modprobe loop", or in a container allow it the loop devices')
  }
}

/** The image with the nodes' root file system. */
export function checkImage(image: string): void {
  if (!existsSync(image))
    throw new UsageError(`the nodes' root file system is not at "${image}": build it with "bun run build:rootfs" or name it with --image`)
}

/** The folder that holds the nodes' disks must take an overlay and have room. */
export function checkDisk(state: string, nodes: number): void {
  mkdirSync(state, { recursive: true, mode: 0o700 })
  const type = fileSystemOf(state)
  if (['overlay', 'overlayfs', 'squashfs', 'nfs', 'nfs4', 'fuse', '9p', 'vfat'].includes(type)) {
    throw new UsageError(
      `"${state}" lies on ${type}, which cannot hold containers' layers: name a folder on ext4, xfs or btrfs with --state`,
    )
  }
  const { bavail, bsize } = statfsSync(state)
  const free = Number(bavail) * Number(bsize)
  const wanted = nodes * diskPerNode
  if (free < wanted) {
    const short = (bytes: number) => `${(bytes / gib).toFixed(1)} GiB`
    throw new UsageError(
      `"${state}" has ${short(free)} free, ${nodes} nodes need ${short(wanted)}: make room, or name another folder with --state`,
    )
  }
}

/** The networks must not be in use, by `more` either; a default one that is in use is replaced by a free one. */
export function checkNetworks({ first, second }: Networks, state: string, requested: boolean, more: readonly HostNetwork[] = []): Networks {
  return { first: checkNetwork(first, state, requested, more), second: second && checkNetwork(second, state, true, more) }
}

function checkNetwork(wanted: Prefix, state: string, requested: boolean, more: readonly HostNetwork[]): Prefix {
  const others = clusters(state).flatMap((cluster) =>
    networksOf(cluster).map((cidr) => ({ link: `cluster "${cluster.name}"`, cidr: parseCidr(cidr) })),
  )
  const used = [...others, ...more, ...hostNetworks()]
  const taken = clash(wanted, used)
  if (!taken) return wanted
  const free = wanted.bytes.length === 4 ? freeNetwork(used) : undefined
  if (!requested && free) return parseCidr(free)
  throw new UsageError(
    `network ${formatPrefix(wanted)} overlaps ${formatPrefix(taken.cidr)} of ${taken.link}: choose another${free ? `, such as --cidr ${free}` : ' with --cidr'}`,
  )
}

/** The host ports through which nodes are exposed must be free. */
export async function checkPorts(address: string, ports: readonly ExposedPort[]): Promise<void> {
  for (const { hostPort, protocol, address: own = address } of ports) {
    if (protocol === 'tcp' && !(await isFree(own, hostPort))) {
      throw new UsageError(`port ${hostPort} of ${own} is in use: expose another with --exposed-ports, or another address with --host-ip`)
    }
  }
}

/** Every cluster kept in a folder whose record can be read. */
export function clusters(state: string): ClusterRecord[] {
  if (!existsSync(state)) return []
  return readdirSync(state, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => {
      try {
        return readCluster(join(state, entry.name)) ?? []
      } catch {
        return []
      }
    })
}

function fileSystemOf(path: string): string {
  const covering = mounts().filter(({ target }) => target === '/' || path === target || path.startsWith(`${target}/`))
  return covering.sort((a, b) => b.target.length - a.target.length)[0]?.type ?? 'unknown'
}

function knownModules(): Set<string> {
  const release = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim()
  const names = new Set<string>()
  for (const file of ['modules.dep', 'modules.builtin']) {
    const path = `/lib/modules/${release}/${file}`
    if (!existsSync(path)) continue
    for (const line of readFileSync(path, 'utf8').split('\n')) names.add(/([^/]+)\.ko/.exec(line)?.[1] ?? '')
  }
  return names
}
