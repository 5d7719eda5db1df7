/**
 * A method of the API is a value: its path, its access and its handler. Whether it streams comes from the .proto file; the
 * four constructors below only type the handler accordingly.
 */

import type { Logger } from '../../cosi/log.ts'
import type { Store } from '../../cosi/store.ts'
import type { Role } from '../../wire/x509/roles.ts'
import type { Methods } from '../messages.ts'
import type { Metadata } from '../metadata.ts'

/** Roles that may call a method that only reads. */
export const readers: readonly Role[] = ['os:admin', 'os:operator', 'os:reader']

/** Roles that may call a method that changes the running machine, but neither its configuration nor its data. */
export const operators: readonly Role[] = ['os:admin', 'os:operator']

/** Access that is wider while the machine waits for its first configuration. */
export interface MaintenanceAccess {
  readonly roles: readonly Role[]
  readonly inMaintenance: readonly Role[]
}

/** Who may call: one of the roles, other roles in maintenance, or `anyone` where the handler checks itself. */
export type Access = readonly Role[] | MaintenanceAccess | 'anyone'

/**
 * Access to a method that changes the machine and is needed before there is a configuration, and so before there are
 * administrators: in maintenance apid gives every caller the role `os:reader`.
 */
export function inMaintenanceOr(roles: readonly Role[], inMaintenance: readonly Role[] = ['os:reader']): MaintenanceAccess {
  return { roles, inMaintenance }
}

/** Whether one of the roles opens a method now. */
export function admits(access: Access, roles: ReadonlySet<Role>, maintenance: () => boolean): boolean {
  if (access === 'anyone') return true
  const { roles: always, inMaintenance } = 'roles' in access ? access : { roles: access, inMaintenance: [] }
  return always.some((role) => roles.has(role)) || (inMaintenance.some((role) => roles.has(role)) && maintenance())
}

/** What a handler gets besides the request. */
export interface Context {
  readonly store: Store
  readonly roles: ReadonlySet<Role>
  /** Aborted when the caller is gone or its deadline has passed. */
  readonly signal: AbortSignal
  readonly peer: string
  /** Who calls, as limits know it: the same object for all calls of a client. */
  readonly client: object
  /** Charges the client for memory that the call holds until it ends, beyond its request. */
  hold(bytes: number): void
  readonly log: Logger
  readonly metadata: Metadata
}

/** A message to send: every field may be omitted, and then has its default. */
export type Init<T> = T extends Uint8Array | string | number | boolean
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Init<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]?: Init<T[Key]> | null | undefined }
      : T

type Path<Kind> = { [P in keyof Methods]: Methods[P]['kind'] extends Kind ? P : never }[keyof Methods]
type Request<P extends keyof Methods> = Methods[P]['request']
type Reply<P extends keyof Methods> = Init<Methods[P]['reply']>

/** A served method. */
export interface Method {
  readonly path: keyof Methods
  readonly access: Access
  readonly kind: 'unary' | 'server' | 'client' | 'bidi'
  readonly handle: (request: never, context: Context) => unknown
  /** Checks the caller by its metadata, before its request is read. Throws RpcError to refuse. */
  readonly admit?: (metadata: Metadata) => void
}

/** One request, one reply. */
export function unary<P extends Path<'unary'>>(
  path: P,
  access: Access,
  handle: (request: Request<P>, context: Context) => Reply<P> | Promise<Reply<P>>,
): Method {
  return { path, access, kind: 'unary', handle }
}

/** One request, many replies; the next reply is produced when the caller has read the last. */
export function serverStream<P extends Path<'server'>>(
  path: P,
  access: Access,
  handle: (request: Request<P>, context: Context) => AsyncIterable<Reply<P>>,
): Method {
  return { path, access, kind: 'server', handle }
}

/** Many requests, one reply. */
export function clientStream<P extends Path<'client'>>(
  path: P,
  access: Access,
  handle: (requests: AsyncIterable<Request<P>>, context: Context) => Reply<P> | Promise<Reply<P>>,
): Method {
  return { path, access, kind: 'client', handle }
}

/** Many requests, many replies. */
export function bidi<P extends Path<'bidi'>>(
  path: P,
  access: Access,
  handle: (requests: AsyncIterable<Request<P>>, context: Context) => AsyncIterable<Reply<P>>,
): Method {
  return { path, access, kind: 'bidi', handle }
}
