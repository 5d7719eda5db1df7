/** Numbers, times and durations as the tables show them. */

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
  const total = Math.round(milliseconds / 1000)
  const [hours, minutes, seconds] = [Math.trunc(total / 3600), Math.trunc(total / 60) % 60, total % 60]
  if (hours !== 0) return `${hours}h${Math.abs(minutes)}m${Math.abs(seconds)}s`
  return minutes !== 0 ? `${minutes}m${Math.abs(seconds)}s` : `${seconds}s`
}

/** A moment on the wire. */
export interface Timestamp {
  readonly seconds: number
  readonly nanos: number
}

/** Milliseconds since 1970 of a moment on the wire. */
export function epoch({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1000 + nanos / 1e6
}

/** A moment as "2026-11-21T09:45:36Z". */
export function rfc3339(timestamp: Timestamp | null | undefined): string {
  if (!timestamp) return ''
  return new Date(Number(timestamp.seconds) * 1000).toISOString().replace('.000Z', 'Z')
}

/** A moment as "2026-11-21 09:45:36.123456789 +0000 UTC". */
export function longTime(timestamp: Timestamp | null | undefined): string {
  if (!timestamp) return ''
  const fraction = timestamp.nanos ? `.${String(timestamp.nanos).padStart(9, '0').replace(/0+$/, '')}` : ''
  return `${rfc3339(timestamp).slice(0, 19).replace('T', ' ')}${fraction} +0000 UTC`
}

/** A duration on the wire. */
export function wireDuration(milliseconds: number): { seconds: number; nanos: number } {
  const seconds = Math.trunc(milliseconds / 1000)
  return { seconds, nanos: Math.round((milliseconds - seconds * 1000) * 1e6) }
}
