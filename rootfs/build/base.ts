/** The generated parts of the root file system: folders, user names, and os-release. */
import { programs } from '../../src/program-table.ts'
import type { Tree } from '../../src/programs/factory/root/tree.ts'
import { type Target, targets } from './target.ts'

/** Where something is mounted or bound when a node runs. */
const mountPoints: Record<string, number> = {
  '/dev': 0o755,
  '/etc/cni': 0o755,
  '/etc/cri': 0o755,
  '/etc/iscsi': 0o755,
  '/etc/kubernetes': 0o755,
  '/etc/nvme': 0o755,
  '/mnt': 0o755,
  '/opt': 0o755,
  '/proc': 0o555,
  '/root': 0o700,
  '/run': 0o755,
  '/sys': 0o555,
  '/system': 0o755,
  '/tmp': 0o1777,
  '/usr/libexec/kubernetes': 0o755,
  '/usr/local/lib/kubelet/credentialproviders': 0o755,
  '/usr/lib/modules': 0o755,
  '/usr/lib/firmware': 0o755,
  '/usr/local': 0o755,
  '/var': 0o755,
}

/** Files that a running node replaces by binding its own over them. */
const bound = ['/etc/hosts', '/etc/resolv.conf', '/etc/hostname', '/etc/machine-id', '/etc/localtime']

const passwd = `root:x:0:0:root:/root:/usr/sbin/nologin
apid:x:50:50:apid:/nonexistent:/usr/sbin/nologin
trustd:x:51:51:trustd:/nonexistent:/usr/sbin/nologin
dashboard:x:52:52:dashboard:/nonexistent:/usr/sbin/nologin
etcd:x:60:60:etcd:/nonexistent:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`

// The groups between tty and sgx are named by udev's rules.
const group = `root:x:0:
tty:x:5:
disk:x:6:
lp:x:7:
kmem:x:15:
dialout:x:20:
cdrom:x:24:
tape:x:26:
audio:x:29:
video:x:44:
apid:x:50:
trustd:x:51:
dashboard:x:52:
etcd:x:60:
input:x:101:
render:x:102:
kvm:x:103:
sgx:x:104:
nobody:x:65534:
`

const nsswitch = `passwd: files
group: files
hosts: files dns
networks: files
protocols: files
services: files
`

/**
 * Names of logical volumes and encrypted ones, as udev(7) has them elsewhere: Debian's rules for them also wait for the tools that
 * made them, which here do not use udevd. Parts of other volumes, which LVM marks in the UUID, get none.
 */
const mapperRules = `SUBSYSTEM!="block", GOTO="mapper_end"
KERNEL!="dm-[0-9]*", GOTO="mapper_end"
ACTION!="add|change", GOTO="mapper_end"
ATTR{dm/uuid}=="LVM-*-*", GOTO="mapper_end"
ATTR{dm/name}=="?*", SYMLINK+="disk/by-id/dm-name-$attr{dm/name}"
ATTR{dm/uuid}=="?*", SYMLINK+="disk/by-id/dm-uuid-$attr{dm/uuid}"
LABEL="mapper_end"
`

/** Adds the shape: short names, mount points, users, and the system's own description. */
export function addBase(tree: Tree, version: string, { merged }: Target = targets.amd64): void {
  for (const name of merged) tree.link('base', `/${name}`, `usr/${name}`)
  for (const [path, mode] of Object.entries(mountPoints)) tree.dir('base', path, mode)
  tree.link('base', '/var/run', '../run')
  tree.dir('base', '/etc/lvm', 0o755) // lvm(8) would make it, and ends where it cannot
  for (const path of bound) tree.text('base', path, '')
  tree.text('base', '/etc/extensions.yaml', '') // what an image without extensions has
  tree.text('base', '/etc/passwd', passwd)
  tree.text('base', '/etc/group', group)
  tree.text('base', '/etc/nsswitch.conf', nsswitch)
  tree.text('base', '/usr/lib/udev/rules.d/60-device-mapper.rules', mapperRules)
  tree.text('base', '/usr/lib/os-release', osRelease(version))
  tree.link('base', '/etc/os-release', '../usr/lib/os-release')
}

/** Adds the binary under all its names. */
export function addBinary(tree: Tree, source: string): void {
  tree.file('ichor', '/usr/bin/ichor', source, 0o755)
  for (const [name, { folder }] of Object.entries(programs)) {
    if (!folder) continue
    tree.link('ichor', `${folder}/${name}`, folder === '/usr/bin' ? 'ichor' : '../bin/ichor')
  }
}

function osRelease(version: string): string {
  const fields = { NAME: 'Ichor', ID: 'ichor', VERSION_ID: `v${version}`, PRETTY_NAME: `Ichor (v${version})` }
  return Object.entries(fields)
    .map(([name, value]) => `${name}="${value}"\n`)
    .join('')
}
