/**
 * The KMS of the field over keys of the server, of which the first one seals. The answer to Seal is a nonce, the encrypted key and a tag; the UUID of the machine is
 * authenticated with them, so that a sealed key copied from one disk opens no other machine's.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type Context, type Method, unary } from '../../rpc/server/method.ts'
import { RpcError } from '../../rpc/status.ts'
import { messageOf } from '../../wire/error-message.ts'
import { longestId, machineId } from './machines.ts'

/** Bytes of the key of the server, and of the keys that it seals. */
export const keyLength = 32
const nonceLength = 12
const tagLength = 16
const sealedLength = nonceLength + keyLength + tagLength
const cipher = 'aes-256-gcm'

/** The keys of the server, of 32 bytes each, read at each call: the first one seals, all unseal. May throw RpcError. */
export type SealingKeys = () => readonly [Uint8Array, ...Uint8Array[]]

/** Whether a machine is served, by its id in lower case. */
export type Serves = (machine: string) => boolean

/**
 * The service. Each call leaves one line in the log, with the machine, the client and, where it was
 * refused, the reason; never with a key.
 */
export function kmsMethods(keys: SealingKeys, serves: Serves = () => true): Method[] {
  return [
    unary('sidero.kms.KMSService/Seal', 'anyone', (request, context) => audited(context, request, 'key sealed', () => seal(request))),
    unary('sidero.kms.KMSService/Unseal', 'anyone', (request, context) => audited(context, request, 'key unsealed', () => unseal(request))),
  ]

  function seal({ nodeUuid, data }: Call): Uint8Array {
    const id = identify(nodeUuid, serves)
    ofLength(data, keyLength, 'a key')
    const [key] = keys()
    const nonce = randomBytes(nonceLength)
    const sealing = createCipheriv(cipher, key, nonce).setAAD(id)
    return new Uint8Array(Buffer.concat([nonce, sealing.update(data), sealing.final(), sealing.getAuthTag()]))
  }

  function unseal({ nodeUuid, data }: Call): Uint8Array {
    const id = identify(nodeUuid, serves)
    ofLength(data, sealedLength, 'a sealed key')
    for (const key of keys()) {
      const secret = opened(key, data, id)
      if (secret) return secret
    }
    throw new RpcError('PermissionDenied', `this server sealed no such key for "${id}"`)
  }
}

/** What a key sealed; undefined for what it did not seal for this id. */
function opened(key: Uint8Array, data: Uint8Array, id: Buffer): Uint8Array | undefined {
  const opening = createDecipheriv(cipher, key, data.subarray(0, nonceLength)).setAAD(id)
  opening.setAuthTag(data.subarray(-tagLength))
  const text = opening.update(data.subarray(nonceLength, -tagLength))
  try {
    opening.final()
  } catch {
    return undefined
  }
  return new Uint8Array(text)
}

interface Call {
  readonly nodeUuid: string
  readonly data: Uint8Array
}

/** Runs a call and logs its outcome. */
function audited({ log, peer }: Context, { nodeUuid }: Call, done: string, run: () => Uint8Array): { data: Uint8Array } {
  // What is no UUID is not logged: it may hold anything.
  const node = machineId(nodeUuid) ?? ''
  try {
    const data = run()
    log.info(done, { node, client: peer })
    return { data }
  } catch (error) {
    log.warn('request refused', { node, client: peer, error: messageOf(error) })
    throw error
  }
}

/** The machine as it is authenticated. Throws InvalidArgument, and PermissionDenied for one that is not served. */
function identify(uuid: string, serves: Serves): Buffer {
  const id = machineId(uuid)
  if (id === undefined) throw new RpcError('InvalidArgument', `the UUID of the machine must have 1 to ${longestId} letters without spaces`)
  if (!serves(id)) throw new RpcError('PermissionDenied', `this server does not serve machine "${id}"`)
  return Buffer.from(id)
}

function ofLength({ length }: Uint8Array, expected: number, what: string): void {
  if (length !== expected) throw new RpcError('InvalidArgument', `${what} has ${expected} bytes, not ${length}`)
}
