/** Ids of other network namespaces in one namespace (linux/net_namespace.h). */
import { DecodeError } from '../decode-error.ts'
import { AttributeReader, u32 } from './attributes.ts'

/** Message types of namespace ids. */
export const namespaceIdMessage = { new: 88, del: 89, get: 90 } as const

const NETNSA = { nsid: 1, pid: 2, fd: 3 } as const
const headerLength = 4 // struct rtgenmsg, padded

/** Decodes a namespace id; -1 when none is assigned. */
export function readNamespaceId(body: Uint8Array): number {
  if (body.length < headerLength) throw new DecodeError('namespace id', 0, `${body.length} bytes`)
  const id = new AttributeReader(body.subarray(headerLength), 'namespace id', headerLength).i32(NETNSA.nsid)
  if (id === undefined) throw new DecodeError('namespace id', headerLength, 'it is missing')
  return id
}

/** Encodes a query for the id of the namespace behind a descriptor or, with `id`, its assignment. */
export function writeNamespaceId(fd: number, id?: number): Uint8Array {
  return Buffer.concat([Buffer.alloc(headerLength), u32(NETNSA.fd, fd), ...(id === undefined ? [] : [u32(NETNSA.nsid, id)])])
}
