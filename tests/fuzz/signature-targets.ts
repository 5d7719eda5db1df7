/** Parsers of signatures of images. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseBundle, parseStatement, signedContent } from '../../src/os/security/signatures/bundle.ts'
import { decodeIdentity } from '../../src/os/security/signatures/certificate-identity.ts'
import { acceptedIdentity, verifyKeyless } from '../../src/os/security/signatures/keyless.ts'
import { parseLogged } from '../../src/os/security/signatures/log-entry.ts'
import { SignatureError } from '../../src/os/security/signatures/signature-error.ts'
import { parseLayer, parsePayload } from '../../src/os/security/signatures/simple-signing.ts'
import { trustMaterialOf } from '../../src/os/security/signatures/trusted-root.ts'
import { SigstoreInstance } from '../os/security/sigstore-instance.ts'
import { bytes, type Target } from './target.ts'

const bundle = readFileSync(join(import.meta.dir, '../os/security/provenance-bundle.json'))
const { dsseEnvelope } = parseBundle(bundle)
const statement = Buffer.from(dsseEnvelope?.payload ?? '', 'base64')
const [digest = ''] = parseStatement(statement)
const payload = { critical: { image: { 'docker-manifest-digest': digest }, type: 'cosign container image signature' } }

const instance = new SigstoreInstance()
const trust = trustMaterialOf(instance.trustedRoot)
const image = { digest: `sha256:${'0'.repeat(64)}`, manifest: () => Promise.reject(new RangeError('no signature is of the manifest')) }
const accepted = acceptedIdentity({ issuer: 'https://accounts.test', subject: 'builder@company.test' })
const keyless = instance.bundle(image.digest)
const layer = instance.layer(image.digest)
const fromBase64 = (text: string) => Buffer.from(text, 'base64')
const { certificate, tlogEntries } = keyless.verificationMaterial

/** Verifies a bundle that must not be accepted. */
async function refuse(bundle: object): Promise<void> {
  const found = { kind: 'bundle', bytes: bytes(JSON.stringify(bundle)), annotations: {} } as const
  const accepts = verifyKeyless(found, image, accepted, trust).then(
    () => true,
    (error: unknown) => {
      if (error instanceof SignatureError) return false
      throw error
    },
  )
  if (await accepts) throw new RangeError('a bundle was accepted that the signer did not make')
}

/** Parsers by name. */
export const signatureTargets: Record<string, Target> = {
  'bundles of Sigstore': {
    seeds: [bundle],
    answers: ['SignatureError'],
    run: (input) => void signedContent(parseBundle(input), digest),
  },
  'in-toto statements': {
    seeds: [statement],
    answers: [],
    run: (input) => void parseStatement(input),
  },
  'payloads of simple signing': {
    seeds: [bytes(JSON.stringify(payload))],
    answers: [],
    run: (input) => void parsePayload(input),
  },
  'keyless signatures in bundles': {
    seeds: [bytes(JSON.stringify(keyless))],
    answers: ['SignatureError'],
    run: (input) => verifyKeyless({ kind: 'bundle', bytes: input, annotations: {} }, image, accepted, trust),
  },
  'keyless signatures in annotations': {
    seeds: [bytes(JSON.stringify(layer.annotations))],
    answers: ['SignatureError', 'SyntaxError', 'DecodeError'],
    async run(input) {
      const annotations: Record<string, string> = {}
      for (const [key, value] of Object.entries(JSON.parse(Buffer.from(input).toString()) ?? {})) annotations[key] = String(value)
      const signed = Buffer.from(layer.payload)
      parseLayer(signed, annotations, image.digest)
      await verifyKeyless({ kind: 'payload', bytes: signed, annotations }, image, accepted, trust)
    },
  },
  'identities in certificates': {
    seeds: [fromBase64(certificate.rawBytes)],
    answers: ['DecodeError'],
    run: (input) => void decodeIdentity(input),
  },
  // A registry may have any certificate and timestamp there, which the package decodes.
  'certificates of keyless signatures': {
    seeds: [fromBase64(certificate.rawBytes)],
    answers: [],
    run(input) {
      const rawBytes = Buffer.from(input).toString('base64')
      const logged = instance.bundle(image.digest, { loggedCertificate: input }).verificationMaterial.tlogEntries
      return refuse({ ...keyless, verificationMaterial: { certificate: { rawBytes }, tlogEntries: logged } })
    },
  },
  'timestamps of keyless signatures': {
    seeds: [fromBase64(instance.timestamp(Buffer.from('another'), new Date('2026-06-01T12:05:00Z')))],
    answers: [],
    run(input) {
      const rfc3161Timestamps = [{ signedTimestamp: Buffer.from(input).toString('base64') }]
      return refuse({
        ...keyless,
        verificationMaterial: { ...keyless.verificationMaterial, timestampVerificationData: { rfc3161Timestamps } },
      })
    },
  },
  'entries of transparency logs': {
    seeds: tlogEntries.map(({ canonicalizedBody }) => fromBase64(canonicalizedBody)),
    answers: ['SignatureError', 'DecodeError'],
    run: (input) => void parseLogged(input),
  },
}
