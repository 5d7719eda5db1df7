/** Values of metrics as text for people. */

const prefixes = ['', 'k', 'M', 'G', 'T', 'P'] as const

/** A number with a decimal prefix and three digits: 0.12, 12.3, 4.56 M. */
export function readableNumber(value: number): string {
  const size = Math.abs(value)
  const power = size < 1000 ? 0 : Math.min(prefixes.length - 1, Math.floor(Math.log10(size) / 3))
  const scaled = value / 1000 ** power
  const text = size !== 0 && size < 0.001 ? value.toExponential(1) : String(Number(scaled.toPrecision(3)))
  return power === 0 ? text : `${text} ${prefixes[power]}`
}

const units = [
  [86_400 * 365, 'years'],
  [86_400, 'days'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
  [1e-3, 'ms'],
  [1e-6, 'µs'],
] as const

/** Seconds in the largest unit that gives at least one of it. */
export function readableDuration(seconds: number): string {
  const size = Math.abs(seconds)
  if (size === 0) return '0 s'
  const [length, name] = units.find(([one]) => size >= one) ?? [1e-6, 'µs']
  return `${Number((seconds / length).toPrecision(3))} ${name}`
}
