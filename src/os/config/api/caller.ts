import { connectionAge as ageHeader, callerAddress, callerAuthority, callerName } from '../../../rpc/caller-metadata.ts'
import type { Context } from '../../../rpc/server/method.ts'
import type { Caller } from '../history/history.ts'

/** The caller, as far as the listener that accepted the call has identified it. */
export function callerOf({ roles, peer, metadata }: Pick<Context, 'roles' | 'peer' | 'metadata'>): Caller {
  const actor = metadata[callerName]?.[0] ?? ''
  return { roles: [...roles].sort(), peer: metadata[callerAddress]?.[0] ?? peer, actor: decoded(actor).slice(0, 256) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The address of a caller who came through apid; undefined for one on the machine itself. */
export const addressOf = ({ metadata }: Pick<Context, 'metadata'>): string | undefined => metadata[callerAddress]?.[0]

/** How long the connection of a caller to apid has been open, in milliseconds. */
export function connectionAge({ metadata }: Pick<Context, 'metadata'>): number | undefined {
  const age = metadata[ageHeader]?.[0]
  return age !== undefined && /^\d{1,15}$/.test(age) ? Number(age) : undefined
}

/** The fingerprint of the authority that issued the caller's certificate. */
export const authorityOf = ({ metadata }: Pick<Context, 'metadata'>): string | undefined => metadata[callerAuthority]?.[0]
