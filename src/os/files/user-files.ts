/** `machine.files`: files that the operator adds to the node. */

import type { Reporter } from '../../document/kind.ts'
import { messageOf } from '../../wire/error-message.ts'
import type { Kernel } from '../kernel.ts'
import { fileMode, fileProblem, isPart, type UserFile, writable } from './documents/machine-files.ts'

/** Where changed copies of image files are stored; each is bind-mounted over the original. */
const shadow = '/system/files'

type Dependencies = {
  files: Pick<Kernel['files'], 'exists' | 'mkdirAll' | 'readTextIfThere' | 'writeAtomic' | 'writeInto'>
  mount: Pick<Kernel['mount'], 'bind' | 'mountAt'>
}

/** A file cannot be written. The message contains the file and the allowed alternatives. */
export class UserFileError extends Error {
  override name = 'UserFileError'
}

/** Writes all files. The errors are thrown together after the last file. */
export async function writeUserFiles(kernel: Dependencies, wanted: readonly UserFile[]): Promise<void> {
  const problems: string[] = []
  for (const file of wanted) {
    if (file.path && isPart(file.path)) continue
    try {
      await write(kernel, file)
    } catch (error) {
      problems.push(`file "${file.path}": ${messageOf(error)}`)
    }
  }
  if (problems.length > 0) throw new UserFileError(problems.join('; '))
}

async function write({ files, mount }: Dependencies, file: UserFile): Promise<void> {
  const { path = '', content = '', permissions, op } = file
  const problem = fileProblem(file)
  if (problem) throw new UserFileError(problem.message)
  const mode = permissions ? fileMode(permissions) : 0o644
  const before = files.readTextIfThere(path)
  if (op !== 'create' && before === undefined) throw new UserFileError(`is not there to ${op}`)
  const text = op === 'append' && before !== undefined ? appended(before, content) : content
  if (path.startsWith(writable)) {
    files.mkdirAll(path.slice(0, path.lastIndexOf('/')), { mode: 0o755 })
    return files.writeAtomic(path, text, { mode })
  }
  const source = `${shadow}${path}`
  files.mkdirAll(source.slice(0, source.lastIndexOf('/')), { mode: 0o700 })
  if (mount.mountAt(path)) return files.writeInto(path, text) // the mount refers to the inode, so it is written in place
  await files.writeAtomic(source, text, { mode })
  mount.bind(source, path)
}

/** Reports files to append or overwrite that do not exist on this machine. */
export function missingFileRules(
  { exists }: Pick<Kernel['files'], 'exists'>,
  wanted: readonly UserFile[] | undefined,
  report: Reporter,
): void {
  const made = new Set<string>()
  for (const [index, { path = '', op = '' }] of (wanted ?? []).entries()) {
    if (op === 'create' || made.has(path) || isPart(path) || exists(path)) made.add(path)
    else report.error(['machine', 'files', index, 'path'], `${JSON.stringify(path)} is not there to ${op}`)
  }
}

/** Content appended at an earlier boot is still on the disk and is not appended twice. */
const appended = (before: string, content: string) => (before.endsWith(content) ? before : before + content)
