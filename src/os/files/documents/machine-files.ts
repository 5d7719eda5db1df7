import * as v from 'valibot'
import { described, listOf, oneOf, section, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'

const mode = v.pipe(
  v.string(),
  v.check((value) => /^(0o?)?[0-7]{3,4}$/.test(value), '{} is not a file mode, like 0o644'),
)

/** `machine.files`: additional files on the node. */
export const machineFiles = v.pipe(
  listOf(
    section({
      content: described(text, 'What is in the file.'),
      permissions: described(mode, 'Its mode, in octal.'),
      path: described(text, 'Where it lies.'),
      op: described(oneOf('create', 'append', 'overwrite'), 'Whether it is made, overwritten or added to.'),
    }),
  ),
  v.description('Files to put on the node.'),
  v.metadata({ example: [{ content: '...', permissions: '0o644', path: '/var/etc/example.conf', op: 'create' }] }),
)

/** One entry of the section. */
export type UserFile = NonNullable<v.InferOutput<typeof machineFiles>>[number]

/** The only directory where files can be created; everything else belongs to the image or the system. */
export const writable = '/var/'

/** A fragment of the containerd configuration, which is merged elsewhere. */
export const isPart = (path: string): boolean => /^\/etc\/cri\/conf\.d\/[^/]+\.part$/.test(path)

/** Why a file is invalid on every machine; undefined if it is valid. */
export function fileProblem({ path, op }: UserFile): { key: 'path' | 'op'; message: string } | undefined {
  if (!path) return { key: 'path', message: 'the path of the file is required' }
  if (!path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '.') || path.endsWith('/'))
    return { key: 'path', message: `${JSON.stringify(path)} must be an absolute path of a file, without "." and ".."` }
  if (!op) return { key: 'op', message: 'one of create, append and overwrite is required' }
  if (op === 'create' && !path.startsWith(writable) && !isPart(path))
    return {
      key: 'path',
      message: `${JSON.stringify(path)} is read-only: files can be created only below ${writable}, or as /etc/cri/conf.d/*.part`,
    }
  return undefined
}

/** Validation rules of the section. */
export function machineFileRules(files: readonly UserFile[] | undefined, report: Reporter): void {
  for (const [index, file] of (files ?? []).entries()) {
    const problem = fileProblem(file)
    if (problem) report.error(['machine', 'files', index, problem.key], problem.message)
  }
}

/** Parses an octal mode, with or without prefix. */
export const fileMode = (written: string): number => Number.parseInt(written.replace(/^0o?/, ''), 8)
