import { UsageError } from '../../failure.ts'

const units: Record<string, number> = {
  b: 1,
  k: 1000,
  kb: 1000,
  kib: 1024,
  m: 1000 ** 2,
  mb: 1000 ** 2,
  mib: 1024 ** 2,
  g: 1000 ** 3,
  gb: 1000 ** 3,
  gib: 1024 ** 3,
}

/** Reads an amount of memory in bytes, such as `2.0GiB` or `2048MB`; a bare number counts MiB. */
export function parseMemory(text: string, flag: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-zA-Z]*)$/.exec(text.trim())
  const unit = match?.[2] === '' ? units.mib : units[(match?.[2] ?? '').toLowerCase()]
  if (!match || unit === undefined) throw new UsageError(`${flag} "${text}": write an amount of memory such as 2GiB or 2048MB`)
  return Math.round(Number(match[1]) * unit)
}

/** Reads a share of processors in thousandths, such as `2.0` or `1500m`. */
export function parseCpus(text: string, flag: string): number {
  const match = /^(\d+(?:\.\d+)?)(m?)$/.exec(text.trim())
  const milli = match ? Math.round(Number(match[1]) * (match[2] === 'm' ? 1 : 1000)) : 0
  if (milli < 10 || milli > 1_000_000) throw new UsageError(`${flag} "${text}": write a number of processors such as 2.0 or 1500m`)
  return milli
}
