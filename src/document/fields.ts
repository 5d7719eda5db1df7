/**
 * The scalars of configuration documents: strings and numbers in their YAML form, validated when they are decoded. `{}` in a
 * message stands for the value that was written.
 */
import * as v from 'valibot'
import { durationPattern, parseDuration } from '../wire/duration.ts'
import { parseIpPort } from '../wire/host-port.ts'
import { parseIp } from '../wire/ip.ts'
import { tryPrefix } from '../wire/prefix.ts'
import { parseByteSize } from './quantity.ts'

/** A required key: marked in the JSON schema, and checked by the rules of its document. */
export const needed = <S extends v.GenericSchema>(schema: S) => v.pipe(schema, v.metadata({ needed: true }))

/** What a key is for: shown in the reference, by editors and in generated configurations. */
export const described = <S extends v.GenericSchema>(schema: S, text: string) => v.pipe(schema, v.description(text))

/** Any string. */
export const text = v.string()

/** true or false. */
export const flag = v.boolean()

/** A whole number of at most `bits` bits. */
export const unsigned = (bits: 8 | 16 | 32 | 64) => {
  const max = bits === 64 ? Number.MAX_SAFE_INTEGER : 2 ** bits - 1
  return v.pipe(
    v.number(),
    v.check((value) => Number.isInteger(value) && value >= 0 && value <= max, `{} is not a whole number from 0 to ${max}`),
  )
}

/** A whole number, possibly negative. */
export const integer = v.pipe(
  v.number(),
  v.check((value) => Number.isSafeInteger(value), '{} is not a whole number'),
)

/** A share of a whole. */
export const share = v.pipe(
  v.number(),
  v.check((value) => value >= 0 && value <= 1, '{} is not a number from 0 to 1'),
  v.metadata({ fraction: true }),
)

/** One of several strings. */
export const oneOf = <const T extends readonly string[]>(...words: T) => v.picklist(words)

/** A list. */
export const listOf = <T extends v.GenericSchema>(item: T) => v.array(item)

/** A list that a patch replaces instead of appending to it. */
export const replacedListOf = <T extends v.GenericSchema>(item: T) => v.pipe(v.array(item), v.metadata({ merge: 'replace' }))

/** A list whose items a patch matches by the first of these keys that both items have. */
export const keyedListOf = <T extends v.GenericSchema>(item: T, ...keys: string[]) => v.pipe(v.array(item), v.metadata({ merge: keys }))

/** A map with any keys. */
export const mapOf = <T extends v.GenericSchema>(value: T) => v.record(v.string(), value)

/** Any YAML value: passed through unchanged. */
export const anything = v.unknown()

/** A map of any values. */
export const free = v.record(v.string(), v.unknown())

/** A map of any values that a patch replaces as a whole. */
export const replacedFree = v.pipe(v.record(v.string(), v.unknown()), v.metadata({ merge: 'replace' }))

type Optional<E extends Record<string, v.GenericSchema>> = { [K in keyof E]: v.OptionalSchema<E[K], undefined> }

/** A map with known keys, all optional. */
export function section<E extends Record<string, v.GenericSchema>>(entries: E) {
  const optional = Object.fromEntries(Object.entries(entries).map(([key, schema]) => [key, v.optional(schema)]))
  return v.object(optional as Optional<E>)
}

/** An IPv4 or IPv6 address. */
export const ip = v.pipe(
  v.string(),
  v.check((value) => isIp(value), '{} is not an IP address'),
  v.metadata({ pattern: '^[0-9a-fA-F.:]+$' }),
)

/** An address with prefix length. */
export const cidr = v.pipe(
  v.string(),
  v.check((value) => isCidr(value), '{} is not an address with a prefix length, like "10.0.0.0/8"'),
  v.metadata({ pattern: String.raw`^[0-9a-fA-F.:]+/\d{1,3}$` }),
)

/** A hardware address. */
export const mac = v.pipe(
  v.string(),
  v.check((value) => /^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2})+$/.test(value), '{} is not a hardware address, like "0c:00:5e:12:34:56"'),
  v.metadata({ pattern: '^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2})+$' }),
)

/** A duration, like `1m30s`. */
export const duration = v.pipe(
  v.string(),
  v.check((value) => parseDuration(value) !== undefined, '{} is not a time span, like "30s" or "1h30m"'),
  v.metadata({ pattern: durationPattern }),
)

/** A size in bytes, like `10GiB`. */
export const byteSize = v.pipe(
  v.string(),
  v.check((value) => parseByteSize(value) !== undefined, '{} is not a size, like "10GiB" or "500MB"'),
)

/** A size in bytes or a percentage; with a minus sign, the space to leave free. */
export const byteSizeOrPercent = v.pipe(
  v.string(),
  v.check((value) => {
    const bare = value.replace(/^-/, '')
    return parseByteSize(bare) !== undefined || (/^\d{1,3}(\.\d+)?%$/.test(bare) && Number.parseFloat(bare) <= 100)
  }, '{} is not a size or share, like "10GiB" or "50%"'),
)

/** A URL with one of these schemes. */
export const url = (...schemes: string[]) =>
  v.pipe(
    v.string(),
    v.check(
      (value) => URL.canParse(value) && (schemes.length === 0 || schemes.includes(new URL(value).protocol.slice(0, -1))),
      schemes.length ? `{} is not a URL that begins with ${schemes.map((scheme) => `"${scheme}://"`).join(' or ')}` : '{} is not a URL',
    ),
    v.metadata({ pattern: schemes.length ? `^(${schemes.join('|')})://` : '^[a-zA-Z][a-zA-Z0-9+.-]*:' }),
  )

/** Address and port: `10.0.0.1:6443`, `[fd00::1]:6443`. */
export const ipAndPort = v.pipe(
  v.string(),
  v.check((value) => parseIpPort(value) !== undefined, '{} is not an address with a port, like "10.0.0.1:51820" or "[fd00::1]:51820"'),
  v.metadata({ pattern: String.raw`^(\[[0-9a-fA-F:.]+\]|[0-9.]+):\d{1,5}$` }),
)

/** A base64 string. */
export const base64 = v.pipe(
  v.string(),
  v.check((value) => /^[A-Za-z0-9+/\s]*(?:={1,2}\s*)?$/.test(value), 'not base64'),
  v.metadata({ pattern: String.raw`^[A-Za-z0-9+/\s]*(?:={1,2}\s*)?$` }),
)

/** A certificate and its key, each base64 of PEM. */
export const certificateAndKey = section({
  crt: described(base64, 'The certificate, base64 of PEM.'),
  key: described(base64, 'The private key, base64 of PEM.'),
})

/** A certificate, base64 of PEM. */
export const certificate = section({ crt: described(base64, 'The certificate, base64 of PEM.') })

/** A key, base64 of PEM. */
export const privateKey = section({ key: described(base64, 'The private key, base64 of PEM.') })

/** Program arguments: a string, or several for a flag that is repeated. */
export const argument = v.union([v.string(), v.array(v.string())])

/** An expression in the Common Expression Language. */
export const expression = v.pipe(
  v.string(),
  v.check((value) => value.trim() !== '', 'an empty expression'),
)

/** Whether a string is an IPv4 or IPv6 address. */
export const isIp = (value: string): boolean => parseIp(value) !== undefined

/** Whether a string is an address with a prefix length. */
export const isCidr = (value: string): boolean => tryPrefix(value) !== undefined
