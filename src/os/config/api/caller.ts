import type { Context } from '../../../rpc/server/method.ts'
import type { Caller } from '../history.ts'

/** Who calls, as far as the door they came in by has told. */
export function callerOf({ roles, peer, metadata }: Pick<Context, 'roles' | 'peer' | 'metadata'>): Caller {
  const actor = metadata['ichor-caller-name']?.[0] ?? ''
  return { roles: [...roles].sort(), peer: metadata['ichor-caller-address']?.[0] ?? peer, actor: decoded(actor).slice(0, 256) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
