import { RpcError, type StatusName, statusCode, statusName } from '../../rpc/status.ts'

/** The metadata of one node's part of a reply. */
export interface ReplyMetadata {
  readonly hostname?: string
  readonly error?: string
  readonly status?: { readonly code?: number; readonly message?: string } | null
}

/** A message that may carry the metadata of its node. */
export type WithMetadata = { readonly metadata?: ReplyMetadata | null | undefined }

/** The error that a node reported in its part of a reply, if any. */
export function failure(metadata: ReplyMetadata | null | undefined): { node: string; error: Error }[] {
  if (!metadata?.error && !metadata?.status?.code) return []
  const { hostname = '', error = '', status } = metadata
  const stated = /^rpc error: code = (\w+) desc = (.*)$/s.exec(error)
  if (status?.code) return [{ node: hostname, error: new RpcError(statusName(status.code), status.message ?? '') }]
  if (stated) return [{ node: hostname, error: new RpcError(named(stated[1] ?? ''), stated[2] ?? '') }]
  return [{ node: hostname, error: new Error(error) }]
}

function named(name: string): StatusName {
  return Object.hasOwn(statusCode, name) ? (name as StatusName) : 'Unknown'
}
