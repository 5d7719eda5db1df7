/** Keys that sign boot programs and firmware variables. */
import { randomBytes, sign } from 'node:crypto'
import { DecodeError } from '../wire/decode-error.ts'
import { type SecureBootVariable, toBeSigned, writeAuthenticatedVariable } from '../wire/efi/authenticated-variable.ts'
import { encodePem, pemLabels } from '../wire/pem.ts'
import { writeSignedData } from '../wire/pkcs7.ts'
import { encodeSigned, encodeTbsCertificate } from '../wire/x509/certificate.ts'
import { encodeName } from '../wire/x509/name.ts'
import { authorityLifetime, type PemPair, parseCertificate } from './certificate.ts'
import { newRsaKey, parseKey } from './key.ts'

/** RSA with 2048 bits and SHA-256 is what every firmware can verify, because Windows requires it. */
const bits = 2048
const algorithm = 'rsa-sha256'

/** Creates a key and a self-signed certificate for signing boot programs. */
export async function newSigningPair(commonName: string, now = new Date()): Promise<PemPair> {
  const key = await newRsaKey(bits)
  const subject = { commonName }
  const serial = randomBytes(16)
  serial.writeUInt8((serial.readUInt8() & 0x7f) | 0x40)
  const tbs = encodeTbsCertificate({
    serial,
    algorithm,
    issuer: encodeName(subject),
    subject,
    notBefore: now,
    notAfter: new Date(now.getTime() + authorityLifetime),
    publicKey: key.spki,
    extensions: { keyUsage: ['digitalSignature'], isCA: false },
  })
  const signature = sign('sha256', tbs, key.private)
  return { crt: encodePem(pemLabels.certificate, encodeSigned(tbs, algorithm, signature)), key: key.pem }
}

/** Creates a key that signs measurements of the firmware (PEM). */
export async function newMeasurementKey(): Promise<string> {
  return (await newRsaKey(bits)).pem
}

/** Signs the contents of a firmware variable, so that the firmware accepts them. Throws DecodeError for a key that does not fit. */
export function signVariable(variable: SecureBootVariable, contents: Uint8Array, { crt, key }: PemPair, at = new Date()): Uint8Array {
  const pair = parseKey(key)
  if (pair.kind !== 'rsa') throw new DecodeError('private key', 0, `firmware takes signatures of RSA keys, this is ${pair.kind}`)
  const certificate = parseCertificate(crt)
  if (Buffer.compare(certificate.publicKey, pair.spki) !== 0)
    throw new DecodeError('private key', 0, 'it is not the key of the certificate')
  const signature = sign('sha256', toBeSigned(variable, at, contents), pair.private)
  return writeAuthenticatedVariable(at, writeSignedData(certificate.raw, signature), contents)
}
