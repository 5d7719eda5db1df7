import * as v from 'valibot'
import { listOf, oneOf, section, text } from '../../../document/fields.ts'

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

/** The number of a mode written in octal, with or without a prefix. */
export const fileMode = (written: string): number => Number.parseInt(written.replace(/^0o?/, ''), 8)
