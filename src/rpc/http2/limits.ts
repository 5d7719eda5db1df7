/** Bounds on everything that a peer can make this process hold or do. */
import type { ShareLimits } from './holder.ts'

/** Bytes of an uncompressed header list, each header counted with 32 more. A thousand node names of 30 letters fit. */
export const maxHeaderList = 65_536

/** Bytes of memory for the headers of an ordinary call; what exceeds them is charged to the client. */
export const ordinaryHeaders = 4096

/** CONTINUATION frames of one header block; a block of the largest list needs four. */
export const maxContinuations = 16

/** SETTINGS_MAX_FRAME_SIZE in bytes: large enough for a message of Read or Copy in one frame. */
export const maxFrame = 65_536

/** The initial window of a stream, and the window it may grow to while few streams share the connection. */
export const firstWindow = 65_535
export const largestWindow = 262_144

/** Upper limit of the sum of all stream windows of a connection, as long as each stream has its initial window. */
export const windowBudget = 8 * 1024 * 1024

/** The window of the connection: replenished on arrival, so that a slow reader blocks no other stream. */
export const connectionWindow = 1024 * 1024

/** Unread bytes that the streams of a connection may hold together; beyond it the connection waits for its readers. */
export const maxHeld = 32 * 1024 * 1024

/** Bytes that the buffer of a stream accepts from its writer before it is full, while few streams share the connection. */
export const streamBuffer = 65_536

/** Upper limit of the sum of all stream buffers of a connection; a buffer never shrinks below the minimum. */
export const bufferBudget = 4 * 1024 * 1024
export const leastBuffer = 4096

/** Chunks up to this size are copied into a shared buffer, so that many small ones do not cost a buffer each. */
export const smallPiece = 1024

/** Bytes waiting for the socket above which streams have to wait, and reading stops from a client that does not read. */
export const softOutput = 131_072
export const hardOutput = 1024 * 1024

/** Bytes waiting for their client's turn above which the client's connection is not read. */
export const softUnread = 16_384

/** Streams that a client may reset, or cause to be reset, in a burst and per second. */
export const resetBurst = 5000
export const resetsPerSecond = 200

/** Consecutive frames that do not advance any call. */
export const maxIdleFrames = 10_000

/** Total SETTINGS frames of a client. Clients that tune their windows send a dozen. */
export const maxSettings = 1000

/** Ids of ended streams that are remembered. */
export const remembered = 1024

/** Milliseconds from connect to the client's first SETTINGS. */
export const greetingTime = 10_000

/** Milliseconds without a call after which a client's connection is closed; clients reconnect transparently. */
export const idleTime = 30 * 60_000

/** Milliseconds of silence after which a client is pinged; it has the same time to answer. */
export const silentTime = 60_000

/** Connections in handshake or preface at a time, before the client is authenticated. */
export const maxGreeting = 512

/**
 * Connections that are accepted in a burst and per second, and the pause in milliseconds after more than that: accepting one
 * costs a fraction of a millisecond before anything is known about the client. The kernel's backlog is 512.
 */
export const acceptBurst = 512
export const acceptsPerSecond = 500
export const acceptPause = 100

/**
 * What the clients of one listener may hold. An address may stand for many clients behind NAT or a load balancer; on a unix
 * socket each connection is an identity of its own.
 */
export const defaultShares: ShareLimits = {
  address: { connections: 512, calls: 4096, bytes: 16 * 1024 * 1024 },
  identity: { connections: 512, calls: 4096, bytes: 12 * 1024 * 1024 },
  all: { connections: 4096, calls: 16_384, bytes: 24 * 1024 * 1024 },
}

/** Milliseconds between checks of client certificates, and the grace period for running calls after expiry. */
export const certificateInterval = 10_000
export const expiredGrace = 5000

/** Milliseconds that a client has to close the connection after the server did. */
export const lingerTime = 1000
