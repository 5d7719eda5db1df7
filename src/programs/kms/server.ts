import type { Logger } from '../../cosi/log.ts'
import { Store } from '../../cosi/store.ts'
import type { ShareLimits } from '../../rpc/http2/holder.ts'
import type { ServerTls } from '../../rpc/http2/listen.ts'
import { type Server, servePlain, serveTls } from '../../rpc/server/server.ts'
import type { HostPort } from '../../wire/host-port.ts'
import { kmsMethods, type Serves } from './methods.ts'

/** A machine makes one call at a time; many machines may share an address. */
const shares: ShareLimits = {
  address: { connections: 256, calls: 256, bytes: 1024 * 1024 },
  identity: { connections: 256, calls: 256, bytes: 1024 * 1024 },
  all: { connections: 1024, calls: 1024, bytes: 4 * 1024 * 1024 },
}

/** Milliseconds until a request must be complete. */
const requestTime = 5_000

/** How keys are served. */
export interface KmsOptions {
  /** The key that seals, of 32 bytes. */
  readonly key: Uint8Array
  /** Without it calls are in clear. */
  readonly tls?: ServerTls | undefined
  /** Which machines are served; without it every one is. It may answer differently over time. */
  readonly serves?: Serves | undefined
  readonly log: Logger
}

/** Serves the KMS at an address. Throws where it cannot listen. */
export function serveKms(address: HostPort, { key, tls, serves, log }: KmsOptions): Promise<Server> {
  const serving = { methods: kmsMethods(() => [key], serves), store: new Store(), log, roles: () => new Set<never>(), shares, requestTime }
  return tls ? serveTls(address, tls, serving) : servePlain(address, serving)
}
