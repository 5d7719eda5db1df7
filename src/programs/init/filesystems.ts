import * as files from '../../linux/files.ts'
import type { MountRequest } from '../../linux/mount.ts'
import * as mount from '../../linux/mount.ts'
import { failedWith } from '../../linux/system-error.ts'

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

/** Folders that services expect, with the modes they rely on. */
const folders: readonly [path: string, mode: number, uid?: number][] = [
  ['/system/etc', 0o700],
  ['/system/var', 0o700],
  ['/system/state', 0o700],
  ['/system/run', 0o751],
  ['/system/run/machined', 0o771, 50],
  ['/system/run/apid', 0o751, 50],
  ['/system/run/trustd', 0o751, 51],
  ['/system/run/containerd', 0o711],
  ['/system/libexec', 0o755],
  ['/run/containerd', 0o711],
  ['/run/lock', 0o755],
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

/** Mounts what is missing and makes the system's folders. */
export function prepareFilesystems(): void {
  for (const request of wanted) {
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
  for (const [path, mode, uid] of folders) {
    files.mkdirAll(path, { mode })
    files.chmod(path, mode)
    if (uid !== undefined) files.chown(path, uid, uid)
  }
  if (!files.lstatIfThere('/var/run')) files.symlink('/run', '/var/run')
}
