import { createPublicKey, X509Certificate } from 'node:crypto'
import * as v from 'valibot'
import { section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Most characters of a trusted root; that of the public instance has eight thousand. */
const largest = 256 * 1024

/** The instance of Sigstore that keyless rules trust, instead of the public one. */
export const ImageTrustedRootConfig = defineDocument({
  kind: 'ImageTrustedRootConfig',
  description:
    'The instance of Sigstore that the keyless rules of `ImageVerificationConfig` trust, instead of the public one. It is not fetched from any server.',
  schema: section({
    trustedRoot: v.pipe(
      text,
      v.description(
        'A `trusted_root.json` of Sigstore: certificate authorities, transparency logs, logs of certificates, and authorities for time.',
      ),
    ),
  }),
  rules({ trustedRoot = '' }, report) {
    const mistake = mistakeIn(trustedRoot)
    if (mistake) report.error(['trustedRoot'], mistake)
  },
})

/** Runs a decoder of keys or certificates, which throws for bytes that are none. */
const decodes = (decode: () => unknown): boolean => {
  try {
    decode()
    return true
  } catch {
    return false
  }
}
const bytesOf = (base64: string) => Buffer.from(base64, 'base64')

const certificate = v.object({
  rawBytes: v.pipe(
    v.string(),
    v.check((base64) => decodes(() => new X509Certificate(bytesOf(base64))), 'not a certificate, base64 of DER'),
  ),
})
const period = v.object({
  start: v.optional(
    v.pipe(
      v.string(),
      v.check((text) => Number.isFinite(Date.parse(text)), 'not a time'),
    ),
  ),
})
const authority = v.object({
  certChain: v.object({ certificates: v.pipe(v.array(certificate), v.minLength(1, 'holds no certificate')) }),
  validFor: v.optional(period),
})
const log = v.object({
  publicKey: v.pipe(
    v.object({ rawBytes: v.string(), keyDetails: v.string(), validFor: v.optional(period) }),
    v.check(
      ({ rawBytes, keyDetails }) =>
        decodes(() => createPublicKey({ key: bytesOf(rawBytes), format: 'der', type: keyDetails.startsWith('PKCS1_') ? 'pkcs1' : 'spki' })),
      'not a public key, base64 of DER',
    ),
  ),
  logId: v.object({ keyId: v.string() }),
})
const someOf = <S extends v.GenericSchema>(item: S) => v.pipe(v.array(item), v.minLength(1, 'is empty: no signature could be verified'))

/** What a keyless signature needs of a trusted root. */
const rootShape = v.object({
  mediaType: v.pipe(
    v.string(),
    v.startsWith('application/vnd.dev.sigstore.trustedroot', 'not application/vnd.dev.sigstore.trustedroot+json;version=0.1'),
  ),
  tlogs: someOf(log),
  certificateAuthorities: someOf(authority),
  ctlogs: someOf(log),
  timestampAuthorities: v.optional(v.array(authority)),
})

/** What is wrong with a trusted root. */
function mistakeIn(json: string): string | undefined {
  if (!json) return 'a trusted root (the content of a trusted_root.json) is required'
  if (json.length > largest) return `a trusted root has at most ${largest / 1024} KiB`
  let root: unknown
  try {
    root = JSON.parse(json)
  } catch {
    return 'not JSON: give the content of a trusted_root.json'
  }
  const [issue] = v.safeParse(rootShape, root, { abortEarly: true }).issues ?? []
  return issue && `not a trusted root of Sigstore: ${v.getDotPath(issue) ?? 'it'}: ${issue.message}`
}
