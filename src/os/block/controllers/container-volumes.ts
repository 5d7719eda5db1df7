import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

interface Folder {
  parent?: string
  /** Where it is seen, relative to its parent. */
  target: string
  mode?: number
  uid?: number
}

/** The volumes of a container: folders that its host has mounted, and those made in them, parents first. */
const folders: Readonly<Record<string, Folder>> = {
  STATE: { target: '/system/state', mode: 0o700 },
  EPHEMERAL: { target: '/var', mode: 0o755 },
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
const run = { link: '/var/run', to: '/run', lock: '/var/run/lock' }

const labels = { 'talos.dev/system-volume': '' }

/** In a container volumes are folders: made where they are missing, and ready then. It has no META partition to wait for. */
export const observeContainerVolumes = ({
  files,
}: {
  files: Pick<Kernel['files'], 'mkdirAll' | 'chown' | 'lstatIfThere' | 'symlink'>
}): Controller =>
  defineController({
    name: 'block.VolumeManagerController',
    inputs: {},
    outputs: { status: exclusive(VolumeStatus) },
    reconcile({ status }) {
      const path = (id: string): string => {
        const { parent, target } = folders[id]!
        return parent ? `${path(parent)}/${target}` : target
      }
      for (const [id, folder] of Object.entries(folders)) {
        const { mode = 0, uid } = folder
        files.mkdirAll(path(id), { mode })
        if (uid !== undefined) files.chown(path(id), uid, uid)
        status.put(id, { phase: 'ready', type: 'directory', mountSpec: mountSpec(folder) }, { labels })
      }
      if (!files.lstatIfThere(run.link)) files.symlink(run.to, run.link)
      files.mkdirAll(run.lock, { mode: 0o755 })
      const symlink = { symlinkTargetPath: run.to, force: true }
      status.put(run.link, { phase: 'ready', type: 'symlink', mountSpec: mountSpec({ target: run.link }), symlink }, { labels })
      const lock = mountSpec({ parent: run.link, target: 'lock', mode: 0o755 })
      status.put(run.lock, { phase: 'ready', type: 'directory', mountSpec: lock }, { labels })
      status.put('META', { phase: 'waiting', type: 'partition' }, { labels })
    },
  })

function mountSpec({ parent, target, mode, uid }: Folder) {
  return {
    targetPath: target,
    selinuxLabel: '',
    projectQuotaSupport: false,
    ...(parent ? { parentId: parent } : {}),
    ...(mode === undefined ? {} : { fileMode: mode }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
  }
}
