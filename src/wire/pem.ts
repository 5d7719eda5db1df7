/** PEM (RFC 7468): labelled base64 between two lines. */
import { DecodeError } from './decode-error.ts'

/** One block of a PEM file. */
export interface PemBlock {
  label: string
  der: Uint8Array
}

/** The labels used here; a private Ed25519 key has a label of its own around ordinary PKCS#8. */
export const pemLabels = {
  certificate: 'CERTIFICATE',
  request: 'CERTIFICATE REQUEST',
  publicKey: 'PUBLIC KEY',
  ed25519: 'ED25519 PRIVATE KEY',
  ecdsa: 'EC PRIVATE KEY',
  rsa: 'RSA PRIVATE KEY',
  pkcs8: 'PRIVATE KEY',
} as const

/** Encodes one block, with lines of 64 characters. */
export function encodePem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.map((line) => `${line}\n`).join('')}-----END ${label}-----\n`
}

/** Decodes every block; text between blocks is skipped, as RFC 7468 §2 allows. */
export function decodePem(text: string): PemBlock[] {
  const blocks: PemBlock[] = []
  let at = 0
  while (true) {
    const begin = text.indexOf('-----BEGIN ', at)
    if (begin < 0) return blocks
    const close = text.indexOf('-----', begin + 11)
    if (close < 0) throw new DecodeError('PEM', begin, 'BEGIN line without its end')
    const label = text.slice(begin + 11, close)
    const trailer = `-----END ${label}-----`
    const end = text.indexOf(trailer, close)
    if (/[\r\n]/.test(label)) throw new DecodeError('PEM', begin, 'BEGIN line without its end')
    if (end < 0) throw new DecodeError('PEM', begin, `no "${trailer}"`)
    const body = text.slice(close + 5, end).replace(/\s+/g, '')
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(body) || body.length % 4 !== 0) throw new DecodeError('PEM', close + 5, 'not base64')
    blocks.push({ label, der: new Uint8Array(Buffer.from(body, 'base64')) })
    at = end + trailer.length
  }
}

/** Decodes the first block with one of these labels. */
export function pemBlock(text: string, ...labels: string[]): PemBlock {
  const block = decodePem(text).find(({ label }) => labels.includes(label))
  if (!block) throw new DecodeError('PEM', 0, `no block labelled ${labels.map((label) => `"${label}"`).join(' or ')}`)
  return block
}
