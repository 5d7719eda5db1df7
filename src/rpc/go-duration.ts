const units: Record<string, number> = { h: 3600e9, m: 60e9, s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, μs: 1e3, ns: 1 }

/** Nanoseconds of a duration in Go's format (`1h2m3.5s`); undefined when it is malformed. */
export function parseGoDuration(text: string): number | undefined {
  if (text === '0') return 0
  if (text.length > 64) return undefined
  const match = /^([-+])?((?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|us|µs|μs|ns|m|s))+$/.exec(text)
  if (!match) return undefined
  let total = 0
  const parts = text.slice(match[1]?.length ?? 0)
  for (const [, number, unit] of parts.matchAll(/(\d+(?:\.\d*)?|\.\d+)(h|ms|us|µs|μs|ns|m|s)/gy)) total += Number(number) * units[unit!]!
  return Math.round(match[1] === '-' ? -total : total)
}

/** Formats nanoseconds as Go does: `1h0m5s`, `1.5s`, `20ms`, `0s`. */
export function formatGoDuration(nanoseconds: number): string {
  if (nanoseconds < 0) return `-${formatGoDuration(-nanoseconds)}`
  if (nanoseconds === 0) return '0s'
  if (nanoseconds < 1e3) return `${nanoseconds}ns`
  if (nanoseconds < 1e6) return `${nanoseconds / 1e3}µs`
  if (nanoseconds < 1e9) return `${nanoseconds / 1e6}ms`
  const seconds = Math.floor(nanoseconds / 1e9)
  const fraction = String(nanoseconds % 1e9)
    .padStart(9, '0')
    .replace(/0+$/, '')
  const rest = `${seconds % 60}${fraction === '' ? '' : `.${fraction}`}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes === 0) return rest
  const hours = Math.floor(minutes / 60)
  return hours === 0 ? `${minutes}m${rest}` : `${hours}h${minutes % 60}m${rest}`
}
