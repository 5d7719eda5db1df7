/**
 * The KMS of the field over one key. The answer to Seal is a nonce, the encrypted key and a tag; the UUID of the machine is
 * authenticated with them, so that a sealed key copied from one disk opens no other machine's.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type Context, type Method, unary } from '../../rpc/server/method.ts'
import { RpcError } from '../../rpc/status.ts'

/** Bytes of the key of the server, and of the keys that it seals. */
export const keyLength = 32
const nonceLength = 12
const tagLength = 16
const sealedLength = nonceLength + keyLength + tagLength
const cipher = 'aes-256-gcm'
/** Letters of a UUID, or of what an operator wrote to META in its place. */
const longestId = 128

/** The service over a key of 32 bytes. Calls are logged with the machine and the client, never with a key. */
export function kmsMethods(key: Uint8Array): Method[] {
  return [
    unary('sidero.kms.KMSService/Seal', 'anyone', ({ nodeUuid, data }, context) => {
      const id = identify(nodeUuid)
      ofLength(data, keyLength, 'a key')
      const nonce = randomBytes(nonceLength)
      const sealing = createCipheriv(cipher, key, nonce).setAAD(id)
      const sealed = Buffer.concat([nonce, sealing.update(data), sealing.final(), sealing.getAuthTag()])
      logged(context, 'key sealed', id)
      return { data: new Uint8Array(sealed) }
    }),
    unary('sidero.kms.KMSService/Unseal', 'anyone', ({ nodeUuid, data }, context) => {
      const id = identify(nodeUuid)
      ofLength(data, sealedLength, 'a sealed key')
      const opening = createDecipheriv(cipher, key, data.subarray(0, nonceLength)).setAAD(id)
      opening.setAuthTag(data.subarray(-tagLength))
      const text = opening.update(data.subarray(nonceLength, -tagLength))
      try {
        opening.final()
      } catch {
        logged(context, 'sealed key refused', id)
        throw new RpcError('PermissionDenied', `this server sealed no such key for machine "${id}"`)
      }
      logged(context, 'key unsealed', id)
      return { data: new Uint8Array(text) }
    }),
  ]
}

/** The machine as it is authenticated. Throws InvalidArgument. */
function identify(uuid: string): Buffer {
  if (!/^[\x21-\x7e]+$/.test(uuid) || uuid.length > longestId)
    throw new RpcError('InvalidArgument', `the UUID of the machine must have 1 to ${longestId} letters without spaces`)
  return Buffer.from(uuid.toLowerCase())
}

function ofLength({ length }: Uint8Array, expected: number, what: string): void {
  if (length !== expected) throw new RpcError('InvalidArgument', `${what} has ${expected} bytes, not ${length}`)
}

const logged = ({ log, peer }: Context, message: string, id: Buffer) => log.info(message, { node: id.toString(), client: peer })
