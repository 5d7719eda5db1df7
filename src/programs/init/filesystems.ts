import * as files from '../../linux/fs/files.ts'
import type { MountRequest } from '../../linux/fs/mount.ts'
import * as mount from '../../linux/fs/mount.ts'
import * as selinux from '../../linux/process/selinux.ts'
import * as modules from '../../linux/system/modules.ts'
import * as uts from '../../linux/system/uts.ts'
import { moduleLoader } from '../../os/runtime/module-loader.ts'
import { failedWith } from '../../wire/errno.ts'

/** What must be mounted for the machine to run; what is there already, as in a container, is left alone. */
const wanted: readonly MountRequest[] = [
  { source: 'proc', target: '/proc', type: 'proc', flags: ['nosuid', 'nodev', 'noexec'] },
  { source: 'sysfs', target: '/sys', type: 'sysfs', flags: ['nosuid', 'nodev', 'noexec'] },
  { source: 'devtmpfs', target: '/dev', type: 'devtmpfs', flags: ['nosuid'], data: 'mode=0755' },
  { source: 'devpts', target: '/dev/pts', type: 'devpts', flags: ['nosuid', 'noexec'], data: 'ptmxmode=000,mode=620,gid=5' },
  { source: 'tmpfs', target: '/dev/shm', type: 'tmpfs', flags: ['nosuid', 'nodev', 'noexec'] },
  { source: 'tmpfs', target: '/run', type: 'tmpfs', flags: ['nosuid', 'nodev'], data: 'mode=0755' },
  { source: 'tmpfs', target: '/system', type: 'tmpfs', flags: ['nosuid', 'nodev'], data: 'mode=0755' },
  { source: 'tmpfs', target: '/tmp', type: 'tmpfs', flags: ['nosuid', 'nodev'], data: 'mode=0755,size=64M' },
]

/** What only a machine of its own needs; a container is handed the like by its host. */
const wantedOnMachine: readonly MountRequest[] = [
  {
    source: 'cgroup2',
    target: '/sys/fs/cgroup',
    type: 'cgroup2',
    flags: ['nosuid', 'nodev', 'noexec'],
    data: 'nsdelegate,memory_recursiveprot',
  },
  { source: 'securityfs', target: '/sys/kernel/security', type: 'securityfs', flags: ['nosuid', 'nodev', 'noexec'] },
  { source: 'bpf', target: '/sys/fs/bpf', type: 'bpf', flags: ['nosuid', 'nodev', 'noexec'], data: 'mode=0700' },
  { source: 'mqueue', target: '/dev/mqueue', type: 'mqueue', flags: ['nosuid', 'nodev', 'noexec'] },
]

/** What not every kernel and firmware has, with the module it takes where that is one. */
const wantedWherePossible: readonly (MountRequest & { module?: string; only?: string })[] = [
  {
    source: 'efivarfs',
    target: '/sys/firmware/efi/efivars',
    type: 'efivarfs',
    flags: ['nosuid', 'nodev', 'noexec'],
    module: 'efivarfs',
    only: '/sys/firmware/efi',
  },
  { source: 'tracefs', target: '/sys/kernel/tracing', type: 'tracefs', flags: ['nosuid', 'nodev', 'noexec'] },
  { source: 'configfs', target: '/sys/kernel/config', type: 'configfs', flags: ['nosuid', 'nodev', 'noexec'], module: 'configfs' },
  { source: 'hugetlbfs', target: '/dev/hugepages', type: 'hugetlbfs', flags: ['nosuid', 'nodev'] },
]

type Folder = readonly [path: string, mode: number, uid?: number]

/** Folders that services expect, with the modes they rely on. */
const folders: readonly Folder[] = [
  ['/system/etc', 0o700],
  ['/system/var', 0o700],
  ['/system/state', 0o700],
  ['/system/run', 0o751],
  ['/system/run/machined', 0o771, 50],
  ['/system/run/apid', 0o751, 50],
  ['/system/run/trustd', 0o751, 51],
  ['/system/run/metricsd', 0o751, 52],
  ['/system/run/containerd', 0o711],
  ['/system/libexec', 0o755],
  ['/run/containerd', 0o711],
  ['/run/lock', 0o755],
]

/** In a container /var is there from the start; a machine of its own gets it with its disk, and these folders with it. */
const foldersOfVar: readonly Folder[] = [
  ['/var/log', 0o755],
  ['/var/log/audit', 0o700],
  ['/var/log/audit/kube', 0o700, 65534],
  ['/var/log/containers', 0o755],
  ['/var/log/pods', 0o755],
  ['/var/lib', 0o700],
  ['/var/lib/containerd', 0o000],
  ['/var/lib/kubelet', 0o700],
  ['/var/lib/cni', 0o700],
  ['/var/lib/kubelet/seccomp/profiles', 0o700],
]

/** Volumes that a container engine or a kubelet may have mounted. */
const engineVolumes = ['/run', '/system', '/var', '/etc/cni', '/etc/kubernetes', '/opt', '/usr/libexec/kubernetes']

/** Mounts what is missing and makes the system's folders. */
export function prepareFilesystems(container: boolean): void {
  for (const request of container ? wanted : [...wanted, ...wantedOnMachine]) {
    if (request.target !== '/proc' && mount.mountAt(request.target)) continue
    if (request.target === '/proc' && files.exists('/proc/self')) continue
    try {
      files.mkdirAll(request.target)
      mount.mount(request)
    } catch (error) {
      // The kernel itself may have mounted it (devtmpfs).
      if (!failedWith(error, 'EBUSY')) throw error
    }
  }
  // Container engines mount everything private; mounts of pods have to reach the kubelet and the other way round.
  if (container) mount.propagate('/', 'rshared')
  else mountWherePossible()
  if (container) closeVolumes()
  // Before what lies in it: the policy has types for folders by their names below this one.
  else selinux.labelFile('/system', 'system_u:object_r:system_t:s0')
  for (const [path, mode, uid] of container ? [...folders, ...foldersOfVar] : folders) {
    files.mkdirAll(path, { mode })
    files.chmod(path, mode)
    if (uid !== undefined) files.chown(path, uid, uid)
  }
  if (container && !files.lstatIfThere('/var/run')) files.symlink('/run', '/var/run')
}

/** Takes the rights of others to write: a kubelet makes the root of a volume writable for everyone. */
function closeVolumes(): void {
  const mounts = mount.mounts()
  for (const path of engineVolumes) if (mount.mountAt(path, mounts) && (files.stat(path).mode & 0o022) !== 0) files.chmod(path, 0o755)
}

/** What cannot be mounted here is left out: nothing the machine must have is among it. */
function mountWherePossible(): void {
  let load: ReturnType<typeof moduleLoader> | undefined
  for (const { module, only, ...request } of wantedWherePossible) {
    if ((only && !files.exists(only)) || mount.mountAt(request.target)) continue
    try {
      if (module) {
        load ??= moduleLoader({ files, modules, uts })
        load(module)
      }
      files.mkdirAll(request.target)
      mount.mount(request)
    } catch {
      // The kernel or its firmware has no such thing.
    }
  }
}
