/** Generic netlink: families by name, each with a number assigned by the running kernel (linux/genetlink.h). */
import { DecodeError } from '../decode-error.ts'
import { AttributeReader, text } from './attributes.ts'

/** The family that resolves families, and its request. */
export const genericControl = { family: 16, getFamily: 3 } as const

const headerLength = 4
const CTRL_ATTR = { familyId: 1, familyName: 2, groups: 7 } as const
const CTRL_ATTR_MCAST_GRP = { name: 1, id: 2 } as const

/** Encodes a message of a family: a command, the family's version, attributes. */
export function writeGeneric(command: number, version: number, attributes: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat([Buffer.from([command, version, 0, 0]), ...attributes])
}

/** Decodes a message of a family. */
export function readGeneric(body: Uint8Array, what: string): { command: number; attributes: AttributeReader } {
  const [command] = body
  if (command === undefined || body.length < headerLength) throw new DecodeError(what, 0, `${body.length} bytes`)
  return { command, attributes: new AttributeReader(body.subarray(headerLength), what, headerLength) }
}

/** Encodes a request for the number of a family. */
export const writeFamilyQuery = (name: string): Uint8Array => writeGeneric(genericControl.getFamily, 1, [text(CTRL_ATTR.familyName, name)])

/** Decodes the number of a family. */
export function readFamilyId(body: Uint8Array): number {
  const id = readGeneric(body, 'netlink family').attributes.u16(CTRL_ATTR.familyId)
  if (id === undefined) throw new DecodeError('netlink family', headerLength, 'it has no number')
  return id
}

/** Decodes the numbers of a family's multicast groups, by name. */
export function readFamilyGroups(body: Uint8Array): Map<string, number> {
  const found = new Map<string, number>()
  for (const { value, offset } of readGeneric(body, 'netlink family').attributes.list(CTRL_ATTR.groups)) {
    const group = new AttributeReader(value, 'netlink family', offset)
    const [name, id] = [group.text(CTRL_ATTR_MCAST_GRP.name), group.u32(CTRL_ATTR_MCAST_GRP.id)]
    if (name !== undefined && id !== undefined) found.set(name, id)
  }
  return found
}
