/** Durations in Go's format, as configurations, specs and flags write them. */

const whole = /^[-+]?(0|((?:\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/
const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g

/** What a duration looks like, as a regular expression; in plain letters, which every dialect reads. */
export const durationPattern: string = whole.source.replaceAll('\\u00B5', 'µ').replaceAll('\\u03BC', 'μ')

const nanoseconds: Record<string, number> = { h: 3600e9, m: 60e9, s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, μs: 1e3, ns: 1 }

/** Nanoseconds of a duration such as `1h2m3.5s`; undefined when it is malformed. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 64 || !whole.test(text)) return undefined
  let total = 0
  for (const [, amount, name = ''] of text.matchAll(part)) total += Number(amount) * (nanoseconds[name] ?? 0)
  const rounded = Math.round(total)
  return text.startsWith('-') && rounded !== 0 ? -rounded : rounded
}

/** Milliseconds of a duration that has passed validation; 0 when there is none. */
export const milliseconds = (text: string | undefined): number => (parseDuration(text ?? '0') ?? 0) / 1e6

/** Formats nanoseconds as Go does: `1h0m5s`, `1.5s`, `20ms`, `0s`. */
export function formatDuration(total: number): string {
  if (total < 0) return `-${formatDuration(-total)}`
  if (total === 0) return '0s'
  if (total < 1e3) return `${total}ns`
  if (total < 1e6) return `${total / 1e3}µs`
  if (total < 1e9) return `${total / 1e6}ms`
  const seconds = Math.floor(total / 1e9)
  const fraction = String(total % 1e9)
    .padStart(9, '0')
    .replace(/0+$/, '')
  const rest = `${seconds % 60}${fraction === '' ? '' : `.${fraction}`}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes === 0) return rest
  const hours = Math.floor(minutes / 60)
  return hours === 0 ? `${minutes}m${rest}` : `${hours}h${minutes % 60}m${rest}`
}
