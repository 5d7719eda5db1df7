/** Sizes of partitions, in bytes. */
export const mebibyte = 1 << 20
export const gibibyte = 2 ** 30

const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']
const binaryUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']

/** A size in powers of 1000. Halves are rounded to even, as the field's tools do. */
export function prettySize(bytes: number): string {
  return pretty(bytes, 1000, units)
}

/** A size in powers of 1024. */
export function prettyBinarySize(bytes: number): string {
  return pretty(bytes, 1024, binaryUnits)
}

function pretty(bytes: number, base: number, names: readonly string[]): string {
  const power = bytes < 10 ? 0 : Math.min(names.length - 1, Math.floor(Math.log(bytes) / Math.log(base) + 1e-9))
  const value = Math.round((bytes / base ** power) * 10) / 10
  if (power > 0 && value < 10) return `${value.toFixed(1)} ${names[power]}`
  const whole = value % 1 === 0.5 && Math.floor(value) % 2 === 0 ? Math.floor(value) : Math.round(value)
  return `${whole} ${names[power]}`
}
