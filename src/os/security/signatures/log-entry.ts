/** Bodies of entries of Rekor, the transparency log (github.com/sigstore/rekor, pkg/types; of its second version rekor/v2 in protobuf-specs). */
import * as v from 'valibot'
import { pemBlock, pemLabels } from '../../../wire/pem.ts'
import { jsonOf } from './json-of.ts'
import { SignatureError } from './signature-error.ts'

const maybe = <T extends v.GenericSchema>(schema: T) => v.optional(v.nullable(schema))
const few = <T extends v.GenericSchema>(schema: T) => v.pipe(v.array(schema), v.maxLength(8))
/** A certificate in PEM, in base64. */
const pem = v.pipe(v.string(), v.maxLength(64 << 10))
const verifier = v.object({ x509Certificate: v.object({ rawBytes: pem }) })

const body = v.object({
  kind: v.string(),
  apiVersion: v.string(),
  spec: v.object({
    /** Of hashedrekord 0.0.1. */
    signature: maybe(v.object({ publicKey: v.object({ content: pem }) })),
    /** Of dsse 0.0.1. */
    signatures: maybe(few(v.object({ verifier: pem }))),
    /** Of intoto 0.0.2. */
    content: maybe(v.object({ envelope: v.object({ signatures: few(v.object({ publicKey: pem })) }) })),
    /** Of the same in the second version of the log. */
    hashedRekordV002: maybe(v.object({ signature: v.object({ verifier }) })),
    dsseV002: maybe(v.object({ signatures: few(v.object({ verifier })) })),
  }),
})

/** What an entry records. */
export interface LoggedSignature {
  readonly kind: string
  readonly version: string
  /** The certificates, in DER, whose signatures were logged. */
  readonly certificates: readonly Uint8Array[]
}

/** Decodes the body of an entry. Throws SignatureError and, for what is no certificate in it, DecodeError. */
export function parseLogged(input: Uint8Array): LoggedSignature {
  const { success, output } = v.safeParse(body, jsonOf(input))
  if (!success) throw new SignatureError('its entry in the transparency log is damaged')
  const { kind, apiVersion, spec } = output
  const texts = [
    spec.signature?.publicKey.content,
    ...(spec.signatures ?? []).map((each) => each.verifier),
    ...(spec.content?.envelope.signatures ?? []).map((each) => each.publicKey),
  ].filter((text) => text !== undefined)
  const verifiers = [spec.hashedRekordV002?.signature.verifier, ...(spec.dsseV002?.signatures ?? []).map((each) => each.verifier)]
  const certificates = [
    ...texts.map((text) => pemBlock(Buffer.from(text, 'base64').toString(), pemLabels.certificate).der),
    ...verifiers.flatMap((each) => (each ? [Buffer.from(each.x509Certificate.rawBytes, 'base64')] : [])),
  ]
  return { kind, version: apiVersion, certificates }
}
