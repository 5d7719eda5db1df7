/** Opens the targets of the configuration. */
import type { Machine } from '../../area.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { FolderTarget } from './folder-target.ts'
import type { OpenTarget } from './settings.ts'

const defaultPath = 'etcd-backups'

/** How the targets of a machine's configuration are opened. */
export const targetsOf =
  ({ kernel: { files, mode }, store }: Pick<Machine, 'kernel' | 'store'>): OpenTarget =>
  ({ name = '', folder }, cluster) => {
    const { volume = '', path = defaultPath } = folder ?? {}
    // In a container volumes are folders of its host.
    const mounted = () => mode === 'container' || store.list(VolumeMountStatus).some(({ spec }) => spec.target === `/var/mnt/${volume}`)
    const missing = () => (mounted() ? undefined : `volume "${volume}" is not mounted: declare it with a UserVolumeConfig`)
    return new FolderTarget({ name, cluster, folder: `/var/mnt/${volume}/${path}`, missing }, files)
  }
