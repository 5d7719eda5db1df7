/** The handshake: an initiation and its response give both sides a pair of transport keys (WireGuard, sections 5.4.2 to 5.4.5). */
import { newExchange, type X25519Key } from '../x509/x25519.ts'
import { hash, initialChainingKey, initialHash, kdf, open, seal } from './crypto.ts'
import { initiationAt, messageLength, messageType, readU32, responseAt, writeU32 } from './message.ts'

/** What both sides know of a peer before a handshake. */
export interface Identity {
  readonly publicKey: Uint8Array
  readonly presharedKey: Uint8Array
}

/** Keys of the two directions, as the side that holds them sees them. */
export interface TransportKeys {
  readonly send: Uint8Array
  readonly receive: Uint8Array
}

/** What the initiator keeps until the response. */
export interface Initiation {
  readonly localIndex: number
  readonly chainingKey: Uint8Array
  readonly hash: Uint8Array
  readonly ephemeral: X25519Key
}

/** What a responder learns from an authentic initiation. */
export interface ReceivedInitiation {
  readonly remoteIndex: number
  readonly publicKey: Uint8Array
  /** TAI64N, 12 bytes that compare as the time does. */
  readonly timestamp: Uint8Array
  readonly chainingKey: Uint8Array
  readonly hash: Uint8Array
  readonly ephemeral: Uint8Array
}

const nothing = new Uint8Array()

/** Writes an initiation, without its macs. */
export function initiate(
  own: X25519Key,
  peer: Identity,
  localIndex: number,
  timestamp: Uint8Array,
): { message: Uint8Array; state: Initiation } {
  const message = new Uint8Array(messageLength.initiation)
  message[0] = messageType.initiation
  writeU32(message, initiationAt.sender, localIndex)
  const ephemeral = newExchange()
  message.set(ephemeral.publicKey, initiationAt.ephemeral)
  let digest = hash(hash(initialHash, peer.publicKey), ephemeral.publicKey)
  let [chain] = kdf(1, initialChainingKey, ephemeral.publicKey) as [Uint8Array]
  const mix = (secret: Uint8Array, plain: Uint8Array, at: number) => {
    const [next, key] = kdf(2, chain, secret) as [Uint8Array, Uint8Array]
    const sealed = seal(key, plain, digest)
    message.set(sealed, at)
    chain = next
    digest = hash(digest, sealed)
  }
  mix(ephemeral.secretWith(peer.publicKey), own.publicKey, initiationAt.static)
  mix(own.secretWith(peer.publicKey), timestamp, initiationAt.timestamp)
  return { message, state: { localIndex, chainingKey: chain, hash: digest, ephemeral } }
}

/** Reads an initiation whose mac1 was checked. Undefined when it is not authentic; `known` may refuse its sender early. */
export function receiveInitiation(
  own: X25519Key,
  message: Uint8Array,
  known: (publicKey: Uint8Array) => boolean,
): ReceivedInitiation | undefined {
  const ephemeral = new Uint8Array(message.subarray(initiationAt.ephemeral, initiationAt.static))
  let digest = hash(hash(initialHash, own.publicKey), ephemeral)
  let [chain] = kdf(1, initialChainingKey, ephemeral) as [Uint8Array]
  const unmix = (secret: Uint8Array | undefined, from: number, to: number) => {
    if (!secret) return undefined
    const [next, key] = kdf(2, chain, secret) as [Uint8Array, Uint8Array]
    const sealed = message.subarray(from, to)
    const plain = open(key, sealed, digest)
    chain = next
    digest = hash(digest, sealed)
    return plain
  }
  const publicKey = unmix(secretOf(own, ephemeral), initiationAt.static, initiationAt.timestamp)
  if (!publicKey || !known(publicKey)) return undefined
  const timestamp = unmix(secretOf(own, publicKey), initiationAt.timestamp, initiationAt.mac1)
  if (!timestamp) return undefined
  return { remoteIndex: readU32(message, initiationAt.sender), publicKey, timestamp, chainingKey: chain, hash: digest, ephemeral }
}

/** Writes the response to an initiation, without its macs. Undefined for an initiator whose key has a low order. */
export function respond(
  initiation: ReceivedInitiation,
  peer: Identity,
  localIndex: number,
): { message: Uint8Array; keys: TransportKeys } | undefined {
  const message = new Uint8Array(messageLength.response)
  message[0] = messageType.response
  writeU32(message, responseAt.sender, localIndex)
  writeU32(message, responseAt.receiver, initiation.remoteIndex)
  const ephemeral = newExchange()
  message.set(ephemeral.publicKey, responseAt.ephemeral)
  const first = secretOf(ephemeral, initiation.ephemeral)
  const second = secretOf(ephemeral, peer.publicKey)
  if (!first || !second) return undefined
  const { chain, key, digest } = mixResponse(initiation, ephemeral.publicKey, first, second, peer.presharedKey)
  message.set(seal(key, nothing, digest), responseAt.empty)
  const [receive, send] = kdf(2, chain, nothing) as [Uint8Array, Uint8Array]
  return { message, keys: { send, receive } }
}

/** Reads the response to an initiation, after its mac1 was checked. Undefined when it is not authentic. */
export function receiveResponse(own: X25519Key, state: Initiation, peer: Identity, message: Uint8Array): TransportKeys | undefined {
  const ephemeral = new Uint8Array(message.subarray(responseAt.ephemeral, responseAt.empty))
  const first = secretOf(state.ephemeral, ephemeral)
  const second = secretOf(own, ephemeral)
  if (!first || !second) return undefined
  const { chain, key, digest } = mixResponse(state, ephemeral, first, second, peer.presharedKey)
  if (!open(key, message.subarray(responseAt.empty, responseAt.mac1), digest)) return undefined
  const [send, receive] = kdf(2, chain, nothing) as [Uint8Array, Uint8Array]
  return { send, receive }
}

/** The part of the response that both sides compute: the key that seals nothing, and what it is sealed with. */
function mixResponse(
  state: { readonly chainingKey: Uint8Array; readonly hash: Uint8Array },
  ephemeral: Uint8Array,
  first: Uint8Array,
  second: Uint8Array,
  presharedKey: Uint8Array,
): { chain: Uint8Array; key: Uint8Array; digest: Uint8Array } {
  let [chain] = kdf(1, state.chainingKey, ephemeral) as [Uint8Array]
  chain = kdf(1, chain, first)[0] as Uint8Array
  chain = kdf(1, chain, second)[0] as Uint8Array
  const [next, temporary, key] = kdf(3, chain, presharedKey) as [Uint8Array, Uint8Array, Uint8Array]
  return { chain: next, key, digest: hash(hash(state.hash, ephemeral), temporary) }
}

/** The shared secret; undefined for a public key of low order, with which anyone could compute it. */
function secretOf(own: X25519Key, publicKey: Uint8Array): Uint8Array | undefined {
  try {
    return own.secretWith(publicKey)
  } catch {
    return undefined // the runtime refuses such keys, with an error of OpenSSL
  }
}
