import { createHash } from 'node:crypto'
import { type Controller, defineController, exclusive, strong } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { EtcFileSpec, EtcFileStatus } from '../resources/etc-file.ts'

/** Where generated files are stored; the root file system is read-only. */
const shadow = '/system/etc'

/**
 * Writes generated files under /etc: outside of the root, bind-mounted over the empty file or directory that the image has for
 * each of them.
 */
export const applyEtcFiles = ({ files, mount }: Pick<Kernel, 'files' | 'mount'>): Controller => {
  // A container engine mounts files of its own at /etc/hosts and the like: a mount alone does not show whose it is.
  const bound = new Set<string>()
  return defineController({
    name: 'files.EtcFileController',
    inputs: { specs: strong(EtcFileSpec) },
    outputs: { statuses: exclusive(EtcFileStatus) },
    async reconcile({ specs, statuses, log }) {
      for (const { metadata } of statuses.list()) if (!specs.get(metadata.id)) await hide({ files, mount, bound }, metadata.id)
      for (const { metadata, spec } of specs.list()) {
        const version = createHash('sha256').update(spec.contents).digest('hex')
        if (statuses.get(metadata.id)?.spec.specVersion !== version) {
          log.info('writing file', { path: `/etc/${metadata.id}` })
          await show({ files, mount, bound }, metadata.id, spec.contents, spec.mode)
        }
        statuses.put(metadata.id, { specVersion: version })
      }
    },
  })
}

interface Dependencies extends Pick<Kernel, 'files' | 'mount'> {
  /** The files below /etc over which a generated one is bound. */
  readonly bound: Set<string>
}

async function show({ files, mount, bound }: Dependencies, id: string, contents: string, mode: number): Promise<void> {
  const target = `/etc/${id}`
  const [first, ...rest] = id.split('/')
  if (rest.length > 0) {
    // A directory of generated files is bind-mounted as a whole.
    if (!mount.mountAt(`/etc/${first}`)) {
      files.mkdirAll(`${shadow}/${first}`, { mode: 0o755 })
      mount.bind(`${shadow}/${first}`, `/etc/${first}`)
    }
    files.mkdirAll(target.slice(0, target.lastIndexOf('/')), { mode: 0o755 })
    await files.writeAtomic(target, contents, { mode })
    return
  }
  const source = `${shadow}/${id}`
  files.mkdirAll(shadow, { mode: 0o700 })
  if (bound.has(target)) {
    // A bind mount refers to the inode, so the file is rewritten in place.
    files.writeInto(source, contents)
    return
  }
  await files.writeAtomic(source, contents, { mode })
  mount.bind(source, target)
  bound.add(target)
}

async function hide({ files, mount, bound }: Dependencies, id: string): Promise<void> {
  const target = `/etc/${id}`
  if (bound.delete(target)) mount.umount(target)
  await files.remove(id.includes('/') ? target : `${shadow}/${id}`)
}
