import { decimal, fields, lines } from './lines.ts'

/** Parses /proc/meminfo; keys are lower case without punctuation (`memtotal`, `activeanon`, `hugepagestotal`), values kB or plain counts. */
export function parseMeminfo(text: string): Record<string, number> {
  const found: Record<string, number> = {}
  for (const { text: line, offset } of lines('meminfo', text, 1024)) {
    const [name = '', value] = fields(line)
    if (name.endsWith(':')) found[name.replace(/[^A-Za-z0-9]/g, '').toLowerCase()] = decimal('meminfo', value, offset)
  }
  return found
}
