import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { VolumeStatus } from '../resources/volume-status.ts'
import { type Folder, folderMount, folders, systemLabels as labels, run } from '../volumes/folders.ts'

/** The volumes of a container: directories mounted by its host, and subdirectories created in them, parents first. */
const all: Readonly<Record<string, Folder>> = {
  STATE: { target: '/system/state', mode: 0o700 },
  EPHEMERAL: { target: '/var', mode: 0o755 },
  ...folders,
}

/** Publishes the volumes of a container. They are directories, created if missing. There is no META partition to wait for. */
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
      const path = ({ parent, target }: Folder): string => {
        const above = parent && all[parent]
        return above ? `${path(above)}/${target}` : target
      }
      for (const [id, folder] of Object.entries(all)) {
        const { mode = 0, uid } = folder
        files.mkdirAll(path(folder), { mode })
        if (uid !== undefined) files.chown(path(folder), uid, uid)
        status.put(id, { phase: 'ready', type: 'directory', mountSpec: folderMount(folder) }, { labels })
      }
      if (!files.lstatIfThere(run.link)) files.symlink(run.to, run.link)
      files.mkdirAll(run.lock, { mode: run.lockMode })
      const symlink = { symlinkTargetPath: run.to, force: true }
      status.put(run.link, { phase: 'ready', type: 'symlink', mountSpec: folderMount({ target: run.link }), symlink }, { labels })
      const lock = folderMount({ parent: run.link, target: 'lock', mode: run.lockMode })
      status.put(run.lock, { phase: 'ready', type: 'directory', mountSpec: lock }, { labels })
      status.put('META', { phase: 'waiting', type: 'partition' }, { labels })
    },
  })
