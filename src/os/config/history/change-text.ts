/** Differences of configurations as text: a line for each removed (`-`) and added (`+`) value, with its path. */
import { formatPath } from '../../../document/path.ts'
import type { Change } from './changes.ts'

/** Replaces a secret. */
export const mask = '******'

const longest = 160

/** The lines of some changes; empty for none. Secrets are masked. */
export function changeText(changes: readonly Change[]): string {
  return changes
    .flatMap((change) => [...lines('-', change, change.before), ...lines('+', change, change.after)])
    .map((line) => `${line}\n`)
    .join('')
}

function lines(sign: '-' | '+', { document, path }: Change, value: unknown): string[] {
  if (value === undefined) return []
  const place = [document, formatPath(path)].filter(Boolean).join(': ')
  return [...leaves(value, place, path.findLast((step) => typeof step === 'string') ?? '')].map(([at, text]) => `${sign} ${at}: ${text}`)
}

/** A value that was added or removed as a whole, leaf by leaf. */
function* leaves(value: unknown, place: string, key: string): Generator<[string, string]> {
  const items: [string | number, unknown][] | undefined = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : typeof value === 'object' && value !== null
      ? Object.entries(value)
      : undefined
  if (!items?.length) yield [place, shown(value, key)]
  for (const [step, item] of items ?? []) {
    const path = formatPath([step])
    yield* leaves(item, path.startsWith('[') ? `${place}${path}` : `${place}.${path}`, typeof step === 'string' ? step : key)
  }
}

function shown(value: unknown, key: string): string {
  if (isSecret(key, value)) return mask
  const plain = typeof value === 'string' && /^[\w./:@+=-]+$/.test(value) && !/^([\d.+-]+|true|false|null|yes|no|on|off)$/i.test(value)
  const text = plain ? value : JSON.stringify(value)
  return text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text
}

/** Whether a value is a secret, by the name of its key or by its format. */
export function isSecret(key: string, value: unknown): boolean {
  if (typeof value !== 'string' || value === '') return false
  if (/(token|secret|password|passphrase|privateKey|presharedKey|secretAccessKey)$/i.test(key) || key === 'auth') return true
  if (key === 'key' && value.length >= 40) return true
  if (/^AGE-SECRET-KEY-/i.test(value)) return true
  return /-----BEGIN [A-Z ]*PRIVATE KEY|LS0tLS1CRUdJTi[A-Za-z0-9+/=]*(UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW)|[?&]\w*token=|:\/\/[^\s/:@]+:[^\s/@]+@/i.test(
    value,
  )
}
