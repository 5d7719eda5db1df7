import { type NetlinkMessage, readMessages } from '../../../src/wire/netlink/message.ts'
import vectors from './captured/namespace-of-linux-6.18.json'

/** Answers of a kernel 6.18 in a namespace with a bridge, a veth pair, VXLAN, routes and a rule. */
export type Captured = keyof typeof vectors

/** The bytes of one answer. */
export function capturedBytes(name: Captured): Uint8Array {
  return new Uint8Array(Buffer.from(vectors[name], 'base64'))
}

/** The messages of one answer without the end of the dump. */
export function captured(name: Captured): NetlinkMessage[] {
  return readMessages(capturedBytes(name)).filter(({ type }) => type !== 3)
}
