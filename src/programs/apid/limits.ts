/** What apid's clients may hold of it. Its control group has 128 MiB, of which the program itself takes about half. */
import type { ShareLimits } from '../../rpc/http2/holder.ts'

/** Calls that a client's connection may have open; another node's carries those of many clients. */
export const maxStreams = 256
export const maxNodeStreams = 4096

/** A call to several nodes counts once for each. */
export const apidShares: ShareLimits = {
  address: { connections: 512, calls: 1024, bytes: 12 * 1024 * 1024 },
  identity: { connections: 512, calls: 1024, bytes: 12 * 1024 * 1024 },
  all: { connections: 1024, calls: 8192, bytes: 16 * 1024 * 1024 },
}
