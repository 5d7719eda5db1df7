import { DecodeError } from '../decode-error.ts'
import { decimal, lines } from './lines.ts'

/** One line of /proc/[pid]/mountinfo. */
export interface MountEntry {
  id: number
  parent: number
  /** Device number as `major:minor`. */
  device: string
  /** The directory of the file system that is mounted. */
  root: string
  target: string
  /** Per-mount options (`ro`, `nosuid`, …). */
  options: string[]
  /** Optional fields: `shared:3`, `master:1`, … */
  propagation: string[]
  type: string
  source: string
  /** Per-file-system options. */
  superOptions: string[]
}

const unescaped = (text: string) => text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** Parses /proc/[pid]/mountinfo (proc_pid_mountinfo(5)). */
export function parseMountinfo(text: string): MountEntry[] {
  return lines('mountinfo', text).map(({ text: line, offset }) => {
    const words = line.split(' ')
    const dash = words.indexOf('-', 6)
    if (dash < 0 || words.length < dash + 4) throw new DecodeError('mountinfo', offset, 'too few fields')
    const [id, parent, device = '', root = '', target = '', options = ''] = words
    const [type = '', source = '', superOptions = ''] = words.slice(dash + 1)
    if (!/^\d+:\d+$/.test(device)) throw new DecodeError('mountinfo', offset, `"${device}" is no device number`)
    return {
      id: decimal('mountinfo', id, offset),
      parent: decimal('mountinfo', parent, offset),
      device,
      root: unescaped(root),
      target: unescaped(target),
      options: options.split(','),
      propagation: words.slice(6, dash),
      type,
      source: unescaped(source),
      superOptions: superOptions.split(','),
    }
  })
}
