/** Where a call goes: read from its metadata alone, before anything is sent anywhere. */

import { isIP } from 'node:net'
import { systemClock } from '../../cosi/clock.ts'
import { callerAddress, callerAuthority, callerIdentity, callerName, connectionAge, newConnection } from '../../rpc/caller-metadata.ts'
import { fansOut } from '../../rpc/fan-out.ts'
import { type MethodShape, methodShape } from '../../rpc/schema.ts'
import { RpcError } from '../../rpc/status.ts'
import { unbracketed } from '../../wire/host-port.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { allRoles } from '../../wire/x509/roles.ts'
import type { Client } from './roles.ts'

/** This node, one node, or several whose replies become one. */
export type Route = { readonly kind: 'local' } | { readonly kind: 'one'; readonly target: string } | FanOut

/** A call that goes to several nodes. */
export interface FanOut {
  readonly kind: 'many'
  readonly targets: readonly string[]
  readonly shape: MethodShape
}

/** What this apid may do for its callers. */
export interface Reach {
  /** Whether calls may go to other nodes: not from a worker, and not in maintenance. */
  readonly forwards: boolean
  /** Whether an address or name is this node's own. */
  isOwn(target: string): boolean
}

const maxTargets = 1000

/** The route of a call. Throws RpcError. */
export function routeOf(headers: Headers, reach: Reach): Route {
  if (headers.proxyfrom !== undefined) return { kind: 'local' }
  const many = values(headers.nodes)
  if (many.length > 0) {
    const path = String(headers[':path'])
    const shape = shapeOf(path)
    if (!fansOut(shape)) throw new RpcError('InvalidArgument', `method ${path} takes one node: send "node" metadata instead of "nodes"`)
    if (many.length > maxTargets)
      throw new RpcError('InvalidArgument', `${many.length} nodes are too many for one call: at most ${maxTargets}`)
    for (const target of many) check(target, reach)
    return { kind: 'many', targets: many, shape }
  }
  const [target, ...others] = values(headers.node)
  if (target === undefined) return { kind: 'local' }
  if (others.length > 0) throw new RpcError('InvalidArgument', '"node" metadata must hold exactly one node')
  check(target, reach)
  return reach.isOwn(target) ? { kind: 'local' } : { kind: 'one', target }
}

function shapeOf(path: string): MethodShape {
  try {
    return methodShape(path)
  } catch {
    throw new RpcError('Unimplemented', `unknown method ${path}`)
  }
}

function check(target: string, reach: Reach): void {
  const name = unbracketed(target)
  if (target.length > 253 || !(isIP(name) !== 0 || /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?$/i.test(target)))
    throw new RpcError('InvalidArgument', 'a node is named by its address or its host name')
  if (!reach.forwards && !reach.isOwn(target)) throw new RpcError('PermissionDenied', 'no request forwarding')
}

/** What of a call's headers goes on, and as whom. */
export function forwardedHeaders(headers: Headers, client: Client, remote: boolean): Headers {
  const out: Headers = { ':method': 'POST', ':scheme': 'http', ':path': String(headers[':path']), ':authority': 'localhost' }
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && !dropped.has(name) && !name.startsWith(':')) out[name] = value
  }
  const named = client.impersonator ? values(headers['talos-role']) : client.roles
  const roles = allRoles.filter((role) => named.includes(role))
  if (roles.length > 0) out['talos-role'] = roles as string[]
  // Who called first: another node's apid knows better than we do.
  const address = client.impersonator ? headers[callerAddress] : client.address
  const name = client.impersonator ? headers[callerName] : client.name && encodeURIComponent(client.name)
  const authority = client.impersonator ? headers[callerAuthority] : client.authority
  if (address) out[callerAddress] = address
  if (name) out[callerName] = name
  if (authority) out[callerAuthority] = authority
  // Of the last connection on the way only: whether this node can be reached is shown by that one.
  if (!remote && client.since !== undefined) out[connectionAge] = String(Math.max(0, Math.floor(systemClock.elapsed() - client.since)))
  if (remote && client.identity) out[callerIdentity] = client.identity
  if (remote) out.proxyfrom = headers[':authority'] ?? 'unknown'
  else if (headers.proxyfrom !== undefined) out.proxyfrom = headers.proxyfrom
  return out
}

/** The client that another node's apid calls for; that node itself when it does not say. */
export function callerOf(headers: Headers, node: Client): { address?: string | undefined; identity?: string | undefined } {
  const [address, identity] = [headers[callerAddress], headers[callerIdentity]]
  if (typeof address !== 'string' && typeof identity !== 'string') return node
  return { ...(typeof address === 'string' && { address }), ...(typeof identity === 'string' && { identity }) }
}

const dropped = new Set([
  callerAddress,
  callerName,
  callerIdentity,
  callerAuthority,
  connectionAge,
  newConnection,
  'node',
  'nodes',
  'proxyfrom',
  'talos-role',
  'host',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

const none: readonly string[] = []
/** One value, without anything that would have to be split or trimmed. */
const plain = /^[^\s,]+$/

function values(header: string | readonly string[] | undefined): readonly string[] {
  if (header === undefined) return none
  if (typeof header === 'string' && plain.test(header)) return [header]
  const text = typeof header === 'string' ? header : header.join(',')
  return text
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '')
}
