import { decimal, fields, lines } from './lines.ts'

/** One line of /proc/meminfo. */
export interface MemoryLine {
  /** As the kernel spells it: `MemTotal`, `Active(anon)`, `HugePages_Total`. */
  readonly name: string
  /** In kB where there is a unit, else a count. */
  readonly value: number
  readonly unit: 'kB' | ''
}

/** Parses /proc/meminfo. */
export function parseMemoryLines(text: string): MemoryLine[] {
  return lines('meminfo', text, 1024).flatMap(({ text: line, offset }): MemoryLine[] => {
    const [name = '', value, unit] = fields(line)
    if (!name.endsWith(':')) return []
    return [{ name: name.slice(0, -1), value: decimal('meminfo', value, offset), unit: unit === 'kB' ? 'kB' : '' }]
  })
}

/** Parses /proc/meminfo; keys are lower case without punctuation (`memtotal`, `activeanon`, `hugepagestotal`), values kB or plain counts. */
export function parseMeminfo(text: string): Record<string, number> {
  return Object.fromEntries(parseMemoryLines(text).map(({ name, value }) => [name.replace(/[^A-Za-z0-9]/g, '').toLowerCase(), value]))
}
