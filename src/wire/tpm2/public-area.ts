/** Public areas of objects (TPM 2.0 part 2, 12.2): templates of the field's objects, and the names that follow from them. */
import { joined, sized, TpmReader, u16, u32 } from './buffer.ts'
import { algorithms, nistP256, objectAttributes } from './constants.ts'
import { sha256 } from './kdf.ts'

const { fixedTpm, fixedParent, sensitiveDataOrigin, userWithAuth, noDictionaryAttacks, restricted, decrypt, sign } = objectAttributes
const coordinateSize = 32

/** Type, hash of the name, attributes and policy of an object. */
const head = (type: number, attributes: number, policy: Uint8Array): Uint8Array =>
  joined(u16(type), u16(algorithms.sha256), u32(attributes), sized(policy))

const none = new Uint8Array()

/** The storage root key: ECC P-256 with AES-128 in CFB mode. The same seed of the TPM yields the same key. */
export const storageRootTemplate: Uint8Array = joined(
  head(algorithms.ecc, fixedTpm | fixedParent | sensitiveDataOrigin | userWithAuth | noDictionaryAttacks | restricted | decrypt, none),
  ...[u16(algorithms.aes), u16(128), u16(algorithms.cfb)],
  ...[u16(algorithms.null), u16(nistP256), u16(algorithms.null)],
  ...[sized(new Uint8Array(coordinateSize)), sized(new Uint8Array(coordinateSize))],
)

/** Sealed data that only a policy opens. */
export const sealedTemplate = (policy: Uint8Array): Uint8Array =>
  joined(head(algorithms.keyedHash, fixedTpm | fixedParent | noDictionaryAttacks, policy), u16(algorithms.null), sized(none))

/** An RSA key outside of the TPM. */
export interface RsaPublic {
  readonly modulus: Uint8Array
  readonly exponent: number
}

/** The key that signs policies. The exponent is written out: with 0, its other form, the key has another name. */
export const policyKeyPublic = ({ modulus, exponent }: RsaPublic): Uint8Array =>
  joined(
    head(algorithms.rsa, sign | decrypt | userWithAuth, none),
    ...[u16(algorithms.null), u16(algorithms.null)],
    ...[u16(modulus.length * 8), u32(exponent), sized(modulus)],
  )

/** The name of an object: the hash algorithm and the hash of its public area. */
export const nameOf = (area: Uint8Array): Uint8Array => joined(u16(algorithms.sha256), sha256(area))

/** A point of the curve P-256: x and y, 32 bytes each. */
export interface EccPoint {
  readonly x: Uint8Array
  readonly y: Uint8Array
}

/** The point of a storage root key, from its public area. Throws DecodeError for another kind of key. */
export function readStorageRoot(area: Uint8Array): EccPoint {
  const reader = new TpmReader(area, 'storage root key')
  const template = new TpmReader(storageRootTemplate, 'template')
  const fixed = storageRootTemplate.length - 2 * (2 + coordinateSize)
  if (Buffer.compare(reader.take(fixed), template.take(fixed)) !== 0) throw reader.failure('it is not of the kind that was requested')
  const point = { x: coordinate(reader), y: coordinate(reader) }
  reader.end()
  return point
}

/** A coordinate, filled up with zeros in front: TPMs leave them out. */
function coordinate(reader: TpmReader): Uint8Array {
  const bytes = reader.sized(coordinateSize)
  const whole = new Uint8Array(coordinateSize)
  whole.set(bytes, coordinateSize - bytes.length)
  return whole
}

/** Encodes a point (TPMS_ECC_POINT). */
export const writePoint = ({ x, y }: EccPoint): Uint8Array => joined(sized(x), sized(y))
