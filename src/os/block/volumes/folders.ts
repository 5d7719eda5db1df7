/** The folders on EPHEMERAL that the system's parts rely on, and the folders of the image that can be written to. */

/** A folder that is a volume of its own. */
export interface Folder {
  parent?: string
  /** Where it is seen, relative to its parent. */
  target: string
  mode?: number
  uid?: number
}

/** Folders by the id of their volume, parents first. */
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

/** Programs of old look for their sockets and locks here. */
export const run = { link: '/var/run', to: '/run', lock: '/var/run/lock', lockMode: 0o755 }

/** Folders of the image that are written to; what is written lies on EPHEMERAL. */
export const overlays: readonly string[] = ['/etc/cni', '/etc/kubernetes', '/usr/libexec/kubernetes', '/opt']

/** What every volume of the system's own carries. */
export const systemLabels = { 'talos.dev/system-volume': '' }

/** How a folder is seen. */
export function folderMount({ parent, target, mode, uid }: Folder) {
  return {
    targetPath: target,
    selinuxLabel: '',
    projectQuotaSupport: false,
    ...(parent ? { parentId: parent } : {}),
    ...(mode === undefined ? {} : { fileMode: mode }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
  }
}
