import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

interface Folder {
  parent?: string
  /** Where it is seen, relative to its parent. */
  target: string
  mode: number
  uid?: number
}

/** The volumes of a container: folders that its host has mounted, and those made in them. */
const folders: Readonly<Record<string, Folder>> = {
  STATE: { target: '/system/state', mode: 0o700 },
  EPHEMERAL: { target: '/var', mode: 0o755 },
  ETCD: { parent: '/var/lib', target: 'etcd', mode: 0o700, uid: 60 },
  '/var/lib': { parent: 'EPHEMERAL', target: 'lib', mode: 0o700 },
  '/var/lib/cni': { parent: '/var/lib', target: 'cni', mode: 0o700 },
  '/var/lib/containerd': { parent: '/var/lib', target: 'containerd', mode: 0o000 },
  '/var/lib/kubelet': { parent: '/var/lib', target: 'kubelet', mode: 0o700 },
  '/var/log': { parent: 'EPHEMERAL', target: 'log', mode: 0o755 },
  '/var/log/audit': { parent: '/var/log', target: 'audit', mode: 0o700 },
  '/var/log/audit/kube': { parent: '/var/log/audit', target: 'kube', mode: 0o700, uid: 65534 },
  '/var/log/containers': { parent: '/var/log', target: 'containers', mode: 0o755 },
  '/var/log/pods': { parent: '/var/log', target: 'pods', mode: 0o755 },
  '/var/mnt': { parent: 'EPHEMERAL', target: 'mnt', mode: 0o755 },
}

/** In a container volumes are folders: made where they are missing, and ready then. */
export const observeContainerVolumes = ({ files }: Pick<Kernel, 'files'>): Controller =>
  defineController({
    name: 'block.VolumeManagerController',
    inputs: {},
    outputs: { status: exclusive(VolumeStatus) },
    reconcile({ status }) {
      const path = (id: string): string => {
        const { parent, target } = folders[id]!
        return parent ? `${path(parent)}/${target}` : target
      }
      for (const [id, { parent, target, mode, uid }] of Object.entries(folders)) {
        files.mkdirAll(path(id), { mode })
        if (uid !== undefined) files.chown(path(id), uid, uid)
        status.put(
          id,
          {
            phase: 'ready',
            type: 'directory',
            mountSpec: {
              targetPath: target,
              selinuxLabel: '',
              projectQuotaSupport: false,
              ...(parent ? { parentId: parent } : {}),
              fileMode: mode,
              ...(uid === undefined ? {} : { uid, gid: uid }),
            },
          },
          { labels: { 'talos.dev/system-volume': '' } },
        )
      }
    },
  })
