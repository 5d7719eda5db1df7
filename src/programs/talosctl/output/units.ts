/** Numbers, times and durations as the tables show them. */
import type { ProtoTime } from '../../../rpc/proto-time.ts'
import { formatDuration } from '../../../wire/duration.ts'

const sizes = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']

/** Bytes in powers of a thousand: "62 B", "1.3 MB", "144 MB". */
export function humanSize(bytes: number): string {
  if (bytes < 10) return `${bytes} B`
  const power = Math.min(Math.floor(Math.log(bytes) / Math.log(1000) + 1e-12), sizes.length - 1)
  const value = Math.floor((bytes / 1000 ** power) * 10 + 0.5) / 10
  return `${value < 10 ? value.toFixed(1) : halfToEven(value)} ${sizes[power]}`
}

/** To a whole number as C's and Go's %.0f do: 144.5 is 144, 145.5 is 146. */
function halfToEven(value: number): number {
  const below = Math.floor(value)
  return value - below === 0.5 && below % 2 === 0 ? below : Math.round(value)
}

/** Milliseconds as "6m26s", rounded to seconds. */
export function goDuration(milliseconds: number): string {
  return formatDuration(Math.round(milliseconds / 1000) * 1e9)
}

/** A moment as "2026-11-21T09:45:36Z". */
export function rfc3339(timestamp: ProtoTime | null | undefined): string {
  if (!timestamp) return ''
  return new Date(Number(timestamp.seconds) * 1000).toISOString().replace('.000Z', 'Z')
}

/** A moment as "2026-11-21 09:45:36.123456789 +0000 UTC". */
export function longTime(timestamp: ProtoTime | null | undefined): string {
  if (!timestamp) return ''
  const fraction = timestamp.nanos ? `.${String(timestamp.nanos).padStart(9, '0').replace(/0+$/, '')}` : ''
  return `${rfc3339(timestamp).slice(0, 19).replace('T', ' ')}${fraction} +0000 UTC`
}
