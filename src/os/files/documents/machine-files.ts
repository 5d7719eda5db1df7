import * as v from 'valibot'
import { listOf, oneOf, section, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'

const mode = v.pipe(
  v.string(),
  v.check((value) => /^(0o?)?[0-7]{3,4}$/.test(value), '{} is not a file mode, like 0o644'),
)

/** `machine.files`: files that the operator puts on the node. */
export const machineFiles = v.pipe(
  listOf(section({ content: text, permissions: mode, path: text, op: oneOf('create', 'append', 'overwrite') })),
  v.description('Files to put on the node.'),
  v.metadata({ example: [{ content: '...', permissions: '0o644', path: '/var/etc/example.conf', op: 'create' }] }),
)

/** One entry of the section. */
export type UserFile = NonNullable<v.InferOutput<typeof machineFiles>>[number]

/** Only here may files be made: everything else is the image's, or made by the system. */
export const writable = '/var/'

/** A part of the configuration of containerd, which is put together elsewhere. */
export const isPart = (path: string): boolean => /^\/etc\/cri\/conf\.d\/[^/]+\.part$/.test(path)

/** Why a file can be put on no machine at all; undefined when it can. */
export function fileProblem({ path, op }: UserFile): { key: 'path' | 'op'; message: string } | undefined {
  if (!path) return { key: 'path', message: 'the path of the file is required' }
  if (!path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '.') || path.endsWith('/'))
    return { key: 'path', message: `${JSON.stringify(path)} has to be absolute and plain, and name a file` }
  if (!op) return { key: 'op', message: 'one of create, append and overwrite is required' }
  if (op === 'create' && !path.startsWith(writable) && !isPart(path))
    return {
      key: 'path',
      message: `${JSON.stringify(path)} is read-only: files can be created only below ${writable}, or as /etc/cri/conf.d/*.part`,
    }
  return undefined
}

/** Rules of the section. */
export function machineFileRules(files: readonly UserFile[] | undefined, report: Reporter): void {
  for (const [index, file] of (files ?? []).entries()) {
    const problem = fileProblem(file)
    if (problem) report.error(['machine', 'files', index, problem.key], problem.message)
  }
}

/** The number of a mode written in octal, with or without a prefix. */
export const fileMode = (written: string): number => Number.parseInt(written.replace(/^0o?/, ''), 8)
