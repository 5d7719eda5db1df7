/** `machine.files`: what the operator puts on the node, beside what the system makes itself. */
import type { Kernel } from '../kernel.ts'
import { fileMode } from './documents/machine-files.ts'

/** One entry of the section. */
export interface UserFile {
  readonly path?: string
  readonly content?: string
  readonly permissions?: string
  readonly op?: string
}

/** Only here may files be made anew: everything else is the image's, or made by the system. */
const writable = '/var/'

/** Where changed files of the image are kept; each is shown in its place by a bind mount. */
const shadow = '/system/files'

/** A part of the configuration of containerd, which is put together elsewhere. */
const parts = /^\/etc\/cri\/conf\.d\/[^/]+\.part$/

type Parts = {
  files: Pick<Kernel['files'], 'exists' | 'mkdirAll' | 'readTextIfThere' | 'writeAtomic' | 'writeInto'>
  mount: Pick<Kernel['mount'], 'bind' | 'mountAt'>
}

/** A file that cannot be put where it is wanted; the message names it and what is allowed. */
export class UserFileError extends Error {
  override name = 'UserFileError'
}

/** Writes all files; those that cannot be written are told together after the others. */
export async function writeUserFiles(kernel: Parts, wanted: readonly UserFile[]): Promise<void> {
  const problems: string[] = []
  for (const file of wanted) {
    if (!file.path || parts.test(file.path)) continue
    try {
      await write(kernel, file.path, file)
    } catch (error) {
      problems.push(`file "${file.path}": ${(error as Error).message}`)
    }
  }
  if (problems.length > 0) throw new UserFileError(problems.join('; '))
}

async function write({ files, mount }: Parts, path: string, { content = '', permissions, op }: UserFile): Promise<void> {
  if (!path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '.'))
    throw new UserFileError('the path must be absolute and plain')
  const mode = permissions ? fileMode(permissions) : 0o644
  const before = files.readTextIfThere(path)
  if (op === 'create' && !path.startsWith(writable)) throw new UserFileError(`can be created only below ${writable}`)
  if (op !== 'create' && before === undefined) throw new UserFileError(`is not there to ${op}`)
  const text = op === 'append' && before !== undefined ? appended(before, content) : content
  if (path.startsWith(writable)) {
    files.mkdirAll(path.slice(0, path.lastIndexOf('/')), { mode: 0o755 })
    return files.writeAtomic(path, text, { mode })
  }
  const source = `${shadow}${path}`
  files.mkdirAll(source.slice(0, source.lastIndexOf('/')), { mode: 0o700 })
  if (mount.mountAt(path)) return files.writeInto(path, text) // the mount shows the inode, so it is written in place
  await files.writeAtomic(source, text, { mode })
  mount.bind(source, path)
}

/** What was appended at an earlier start stays on the disk; it is not appended twice. */
const appended = (before: string, content: string) => (before.endsWith(content) ? before : before + content)
