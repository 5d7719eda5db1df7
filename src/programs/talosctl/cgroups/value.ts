/**
 * One value of a control group (Documentation/admin-guide/cgroup-v2.rst): the whole of a file, the number behind a key
 * ("cpu.stat" has "user_usec 17"), or one within a line ("memory.pressure" has "some avg10=0.00 …"; "io.stat" has a line
 * for each device, whose numbers are added up).
 */
import type { Group } from './tree.ts'

/** What the file holds; undefined when the group has no such file or key. */
export function groupValue({ files }: Group, file: string, key = ''): string | undefined {
  const text = files.get(file)
  if (text === undefined || key === '') return text
  const [line = '', field] = key.split('.')
  if (field === undefined) {
    const found = text.split('\n').find((one) => one.startsWith(`${line} `))
    return found?.slice(line.length + 1)
  }
  const lines = text.split('\n').filter((one) => line === '*' || one.startsWith(`${line} `))
  const values = lines.flatMap((one) =>
    one.split(' ').flatMap((word) => (word.startsWith(`${field}=`) ? [word.slice(field.length + 1)] : [])),
  )
  if (line !== '*') return values[0]
  return lines.length === 0 || text === '' ? '0' : String(values.reduce((sum, value) => sum + Number(value), 0))
}

/** How values are shown. */
export const forms = ['plain', 'bytes', 'microseconds', 'count'] as const

/** A value as text: "max" and what is not there stay words. */
export function shown(value: string | undefined, form: (typeof forms)[number] = 'plain'): string {
  if (value === undefined) return '-'
  if (form === 'count') return String(value === '' ? 0 : value.split('\n').length)
  const number = Number(value)
  if (value === '' || Number.isNaN(number)) return value
  if (form === 'bytes') return binarySize(number)
  if (form === 'microseconds') return seconds(number / 1e6)
  return value
}

/** One number as percent of another. */
export function share(part: string | undefined, whole: string | undefined): string {
  const [a, b] = [Number(part), Number(whole)]
  return part === undefined || whole === undefined || Number.isNaN(a) || Number.isNaN(b) || b === 0 ? '-' : `${((a / b) * 100).toFixed(2)}%`
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']

function binarySize(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** power
  return `${power === 0 || value >= 10 ? value.toFixed(0) : value.toFixed(1)} ${units[power]}`
}

function seconds(value: number): string {
  if (value < 60) return `${value.toFixed(2)}s`
  const [hours, minutes] = [Math.floor(value / 3600), Math.floor(value / 60) % 60]
  return `${hours > 0 ? `${hours}h` : ''}${minutes}m${(value % 60).toFixed(0)}s`
}
