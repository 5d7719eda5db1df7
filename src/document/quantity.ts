/** Parses and formats durations and sizes. */

const units: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 }

/** Nanoseconds of a duration such as "1h30m"; undefined when it is malformed. */
export function nanoseconds(span: string): number | undefined {
  const match = /^([-+]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(span)
  if (!match) return undefined
  let total = 0
  for (const [, amount, unit] of match[2]!.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy))
    total += Number(amount) * units[unit!]!
  return match[1] === '-' ? -total : total
}

/** Milliseconds of a duration that has passed validation; 0 when there is none. */
export const milliseconds = (span: string | undefined): number => (nanoseconds(span ?? '0') ?? 0) / 1e6

const sizes: Record<string, number> = {
  '': 1,
  b: 1,
  ...Object.fromEntries(
    ['k', 'm', 'g', 't', 'p'].flatMap((letter, power) => [
      [letter, 1000 ** (power + 1)],
      [`${letter}b`, 1000 ** (power + 1)],
      [`${letter}i`, 1024 ** (power + 1)],
      [`${letter}ib`, 1024 ** (power + 1)],
    ]),
  ),
}

/** Bytes of a size such as "10GiB", "1.5 TB" or "4096"; undefined when it is malformed. */
export function parseByteSize(size: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]{0,3})$/.exec(size.trim())
  const unit = match && sizes[match[2]!.toLowerCase()]
  return unit ? Math.round(Number(match[1]) * unit) : undefined
}

/** Formats nanoseconds as a Go duration: "1m30s", "1.5ms", "0s". */
export function formatSpan(total: number): string {
  if (total === 0) return '0s'
  const sign = total < 0 ? '-' : ''
  let left = Math.abs(total)
  for (const [unit, size] of [
    ['ns', 1],
    ['µs', 1e3],
    ['ms', 1e6],
  ] as const)
    if (left < size * 1000) return `${sign}${left / size}${unit}`
  const hours = Math.floor(left / 3600e9)
  left -= hours * 3600e9
  const minutes = Math.floor(left / 60e9)
  left -= minutes * 60e9
  return `${sign}${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${left / 1e9}s`
}
