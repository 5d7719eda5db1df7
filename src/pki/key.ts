/** Key pairs of the three supported kinds, and their PEM. */
import { createPrivateKey, createPublicKey, generateKeyPair, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { DecodeError } from '../wire/decode-error.ts'
import { encodePem, pemBlock, pemLabels } from '../wire/pem.ts'
import type { SignatureAlgorithm } from '../wire/x509/certificate.ts'

/** Ed25519, ECDSA on P-256, or RSA of 4096 bits. */
export type KeyKind = 'ed25519' | 'ecdsa' | 'rsa'

/** A private key, with everything needed to use and to store it. */
export interface KeyPair {
  kind: KeyKind
  private: KeyObject
  /** SubjectPublicKeyInfo, DER. */
  spki: Uint8Array
  /** The private key as PEM. */
  pem: string
  /** The public key as PEM. */
  publicPem: string
}

/** Creates an Ed25519 or ECDSA key; an RSA key takes about a second, see `newRsaKey`. */
export function newKey(kind: 'ed25519' | 'ecdsa'): KeyPair {
  return kind === 'ed25519'
    ? keyPair(generateKeyPairSync('ed25519').privateKey)
    : keyPair(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
}

/** Creates an RSA key without blocking the event loop. */
export async function newRsaKey(bits = 4096): Promise<KeyPair> {
  return keyPair((await promisify(generateKeyPair)('rsa', { modulusLength: bits })).privateKey)
}

/** Parses a private key with any of the usual PEM labels. */
export function parseKey(pem: string): KeyPair {
  const { label, der } = pemBlock(pem, pemLabels.ed25519, pemLabels.ecdsa, pemLabels.rsa, pemLabels.pkcs8)
  const type = label === pemLabels.ecdsa ? 'sec1' : label === pemLabels.rsa ? 'pkcs1' : 'pkcs8'
  try {
    return keyPair(createPrivateKey({ key: Buffer.from(der), format: 'der', type }))
  } catch (error) {
    if (error instanceof DecodeError) throw error
    throw new DecodeError('private key', 0, `"${label}" does not hold a usable key`)
  }
}

function keyPair(key: KeyObject): KeyPair {
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  const publicPem = encodePem(pemLabels.publicKey, spki)
  const der = (type: 'pkcs8' | 'sec1' | 'pkcs1') => key.export({ format: 'der', type } as { format: 'der'; type: 'pkcs8' })
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return { kind: 'ed25519', private: key, spki, publicPem, pem: encodePem(pemLabels.ed25519, der('pkcs8')) }
    case 'ec':
      return { kind: 'ecdsa', private: key, spki, publicPem, pem: encodePem(pemLabels.ecdsa, der('sec1')) }
    case 'rsa':
      return { kind: 'rsa', private: key, spki, publicPem, pem: encodePem(pemLabels.rsa, der('pkcs1')) }
    default:
      throw new DecodeError('private key', 0, `keys of type "${key.asymmetricKeyType}" are not used`)
  }
}

/** The algorithm with which a key of each kind signs certificates. */
export const signatureAlgorithmOf = { ed25519: 'ed25519', ecdsa: 'ecdsa-sha256', rsa: 'rsa-sha512' } as const satisfies Record<
  KeyKind,
  SignatureAlgorithm
>

const digestOf = (algorithm: string): string | null => (algorithm === 'ed25519' ? null : algorithm.slice(algorithm.indexOf('-') + 1))

/** Signs bytes with the algorithm used for certificates. */
export function signWith(key: KeyPair, bytes: Uint8Array): Uint8Array {
  return sign(digestOf(signatureAlgorithmOf[key.kind]), bytes, key.private)
}

/** Whether this public key made the signature; false also for unsupported algorithms. */
export function verifySignature(spki: Uint8Array, algorithm: string, bytes: Uint8Array, signature: Uint8Array): boolean {
  if (!/^(ed25519|(ecdsa|rsa)-sha(256|384|512))$/.test(algorithm)) return false
  try {
    const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
    const family = key.asymmetricKeyType === 'ec' ? 'ecdsa' : key.asymmetricKeyType
    return family === algorithm.split('-')[0] && verify(digestOf(algorithm), bytes, key, signature)
  } catch {
    return false
  }
}

/** A private key as TLS libraries accept it: the same PEM, or PKCS#8 under its standard label for Ed25519. */
export const tlsKey = (pem: string): string => pem.replaceAll('ED25519 PRIVATE KEY', 'PRIVATE KEY')
