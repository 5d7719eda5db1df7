/** Directories on EPHEMERAL required by system components, and writable directories of the image. */

/** A directory that is a volume. */
export interface Folder {
  parent?: string
  /** Mount point relative to the parent. */
  target: string
  mode?: number
  uid?: number
}

/** Directories by volume id, parents first. */
export const folders: Readonly<Record<string, Folder>> = {
  '/var/lib': { parent: 'EPHEMERAL', target: 'lib', mode: 0o700 },
  ETCD: { parent: '/var/lib', target: 'etcd', mode: 0o700, uid: 60 },
  '/var/lib/cni': { parent: '/var/lib', target: 'cni', mode: 0o700 },
  '/var/lib/containerd': { parent: '/var/lib', target: 'containerd' },
  '/var/lib/kubelet': { parent: '/var/lib', target: 'kubelet', mode: 0o700 },
  '/var/lib/kubelet/seccomp': { parent: '/var/lib/kubelet', target: 'seccomp', mode: 0o700 },
  '/var/lib/kubelet/seccomp/profiles': { parent: '/var/lib/kubelet/seccomp', target: 'profiles', mode: 0o700 },
  '/var/log': { parent: 'EPHEMERAL', target: 'log', mode: 0o755 },
  '/var/log/audit': { parent: '/var/log', target: 'audit', mode: 0o700 },
  '/var/log/audit/kube': { parent: '/var/log/audit', target: 'kube', mode: 0o700, uid: 65534 },
  '/var/log/containers': { parent: '/var/log', target: 'containers', mode: 0o755 },
  '/var/log/pods': { parent: '/var/log', target: 'pods', mode: 0o755 },
  '/var/mnt': { parent: 'EPHEMERAL', target: 'mnt', mode: 0o755 },
}

/** Legacy location of sockets and locks. */
export const run = { link: '/var/run', to: '/run', lock: '/var/run/lock', lockMode: 0o755 }

/** Writable directories of the image, as overlays whose upper layer is on EPHEMERAL. */
export const overlays: readonly string[] = ['/etc/cni', '/etc/kubernetes', '/usr/libexec/kubernetes', '/opt']

/** Labels of every system volume. */
export const systemLabels = { 'talos.dev/system-volume': '' }

/** The mount spec of a directory. */
export function folderMount({ parent, target, mode, uid }: Folder, selinuxLabel = '') {
  return {
    targetPath: target,
    selinuxLabel,
    projectQuotaSupport: false,
    ...(parent && { parentId: parent }),
    ...(mode !== undefined && { fileMode: mode }),
    ...(uid !== undefined && { uid, gid: uid }),
  }
}
