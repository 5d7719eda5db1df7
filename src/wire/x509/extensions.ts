/** Certificate extensions (RFC 5280 §4.2): the six that are encoded and decoded here. */
import { DecodeError } from '../decode-error.ts'
import { bitString, boolean, DerReader, element, implicit, octetString, oid, sequence, tags } from '../der.ts'
import { formatIp, parseIp } from '../ip.ts'

/** Bits of keyUsage in the order of RFC 5280 §4.2.1.3. */
const keyUsages = [
  'digitalSignature',
  'contentCommitment',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'certSign',
  'crlSign',
] as const
/** What the key may be used for. */
export type KeyUsage = (typeof keyUsages)[number]

/** Purposes of extKeyUsage by name. */
const extendedKeyUsages = {
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  codeSigning: '1.3.6.1.5.5.7.3.3',
} as const
/** What the certificate may be used for; an unknown purpose stays a dotted identifier. */
export type ExtendedKeyUsage = keyof typeof extendedKeyUsages | (string & {})

/** Subject alternative names. */
export interface AltNames {
  dns?: string[]
  /** As strings; in canonical form after decoding. */
  ips?: string[]
}

/** The extensions of one certificate or request. */
export interface Extensions {
  keyUsage?: KeyUsage[]
  extendedKeyUsage?: ExtendedKeyUsage[]
  /** basicConstraints, absent when undefined. */
  isCA?: boolean
  subjectKeyId?: Uint8Array
  authorityKeyId?: Uint8Array
  altNames?: AltNames
}

const ids = {
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  altNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
}

const extension = (id: string, critical: boolean, value: Uint8Array) =>
  sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value))

/** Encodes the list; alternative names are critical only when the subject is empty (§4.2.1.6). */
export function encodeExtensions(extensions: Extensions, emptySubject = false): Uint8Array {
  const { keyUsage, extendedKeyUsage, isCA, subjectKeyId, authorityKeyId, altNames } = extensions
  const list: Uint8Array[] = []
  if (keyUsage?.length) list.push(extension(ids.keyUsage, true, usageBits(keyUsage)))
  if (extendedKeyUsage?.length) {
    const purposes = extendedKeyUsage.map((usage) => oid(extendedKeyUsages[usage as keyof typeof extendedKeyUsages] ?? usage))
    list.push(extension(ids.extendedKeyUsage, false, sequence(...purposes)))
  }
  if (isCA !== undefined) list.push(extension(ids.basicConstraints, true, sequence(...(isCA ? [boolean(true)] : []))))
  if (subjectKeyId) list.push(extension(ids.subjectKeyId, false, octetString(subjectKeyId)))
  if (authorityKeyId) list.push(extension(ids.authorityKeyId, false, sequence(implicit(0, authorityKeyId))))
  const names = [
    ...(altNames?.dns ?? []).map((name) => implicit(2, Buffer.from(name, 'latin1'))),
    ...(altNames?.ips ?? []).map((ip) => implicit(7, addressBytes(ip))),
  ]
  if (names.length) list.push(extension(ids.altNames, emptySubject, sequence(...names)))
  return sequence(...list)
}

function addressBytes(ip: string): Uint8Array {
  const bytes = parseIp(ip)
  if (!bytes) throw new DecodeError('IP address', 0, `"${ip}" is not one`)
  return bytes
}

function usageBits(usages: KeyUsage[]): Uint8Array {
  const highest = Math.max(...usages.map((usage) => keyUsages.indexOf(usage)))
  let byte = 0
  for (const usage of usages) byte |= 0x80 >> keyUsages.indexOf(usage)
  return bitString(Buffer.from([byte]), 7 - highest)
}

/** Decodes the list; unknown extensions are skipped. */
export function decodeExtensions(reader: DerReader): Extensions {
  const found: Extensions = {}
  while (!reader.done) {
    const item = reader.enter()
    const id = item.oid()
    item.optional(tags.boolean)
    const { content, offset } = item.next(tags.octetString)
    const value = new DerReader(reader.what, content, offset)
    if (id === ids.keyUsage) {
      const byte = value.bits()[0] ?? 0
      found.keyUsage = keyUsages.filter((_, bit) => byte & (0x80 >> bit))
    } else if (id === ids.extendedKeyUsage) {
      const purposes = value.enter()
      const names = Object.entries(extendedKeyUsages)
      found.extendedKeyUsage = []
      while (!purposes.done) {
        const purpose = purposes.oid()
        found.extendedKeyUsage.push(names.find(([, known]) => known === purpose)?.[0] ?? purpose)
      }
    } else if (id === ids.basicConstraints) {
      found.isCA = (value.enter().optional(tags.boolean)?.content[0] ?? 0) !== 0
    } else if (id === ids.subjectKeyId) {
      found.subjectKeyId = value.next(tags.octetString).content
    } else if (id === ids.authorityKeyId) {
      const key = value.enter().optional(0x80)
      if (key) found.authorityKeyId = key.content
    } else if (id === ids.altNames) {
      found.altNames = decodeAltNames(value.enter())
    }
  }
  return found
}

function decodeAltNames(names: DerReader): AltNames {
  const dns: string[] = []
  const ips: string[] = []
  while (!names.done) {
    const { tag, content } = names.next()
    if (tag === 0x82) dns.push(Buffer.from(content).toString('latin1'))
    else if (tag === 0x87) {
      if (content.length !== 4 && content.length !== 16) names.fail(`address of ${content.length} bytes`)
      ips.push(formatIp(content))
    }
  }
  return { ...(dns.length && { dns }), ...(ips.length && { ips }) }
}

/** The extensions attribute of a certificate request (RFC 2985 §5.4.2). */
export const extensionRequest = (extensions: Extensions): Uint8Array =>
  sequence(oid('1.2.840.113549.1.9.14'), element(tags.set, encodeExtensions(extensions)))
