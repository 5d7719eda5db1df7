/** How much of everything the other side of a connection may make us hold or do. */
import type { ShareLimits } from './shares.ts'

/** Bytes of an uncompressed header list, each header counted with 32 more. A thousand node names of 30 letters fit. */
export const maxHeaderList = 65_536

/** Bytes of memory that the headers of an ordinary call take; what a call's headers take beyond it is charged to its client. */
export const ordinaryHeaders = 4096

/** Frames that may continue one header block; a block of the largest list needs four. */
export const maxContinuations = 16

/** Bytes of a frame that we take: large enough for a message of Read or Copy at once. */
export const maxFrame = 65_536

/** The window that a stream begins with, and the one it may grow to while few share the connection. */
export const firstWindow = 65_535
export const largestWindow = 262_144

/** What the windows of all streams of a connection may add up to, as long as each has its first. */
export const windowBudget = 8 * 1024 * 1024

/** The window of the whole connection: given back on arrival, so that a slow reader holds back nobody else. */
export const connectionWindow = 1024 * 1024

/** Bytes that the streams of a connection may hold unread together; beyond it the connection waits for its readers. */
export const maxHeld = 32 * 1024 * 1024

/** Bytes a stream takes from its sender before it is full, as long as few share the connection. */
export const streamBuffer = 65_536

/** What the buffers of all streams of a connection may add up to; a buffer does not get smaller than the least. */
export const bufferBudget = 4 * 1024 * 1024
export const leastBuffer = 4096

/** Bytes of a piece that is kept together with those that follow, so that many small ones do not cost a buffer each. */
export const smallPiece = 1024

/** Bytes that wait for the socket before streams have to wait, and before we stop reading from a client that reads nothing. */
export const softOutput = 131_072
export const hardOutput = 1024 * 1024

/** Streams that a client may break off, or have broken off, at once, and each second. */
export const resetBurst = 5000
export const resetsPerSecond = 200

/** Frames that move no call which may come one after another. */
export const maxIdleFrames = 10_000

/** SETTINGS frames that a client may send in all. Clients that tune their windows send a dozen. */
export const maxSettings = 1000

/** Numbers of streams that are remembered after their end. */
export const remembered = 1024

/** Milliseconds from a client's connect to its first settings. */
export const greetingTime = 10_000

/** Milliseconds without any call after which a client's connection is ended; clients dial again without notice. */
export const idleTime = 30 * 60_000

/** Milliseconds of silence of a client after which it is asked whether it is there; it has as long again to answer. */
export const silentTime = 60_000

/** Connections that may be greeting at a time, before anyone knows who they are. */
export const maxGreeting = 512

/**
 * Connections that are accepted at once, and each second in the long run, and milliseconds without any once there were more:
 * one costs a fraction of a millisecond before anything is known of it. The kernel keeps 512 waiting.
 */
export const acceptBurst = 512
export const acceptsPerSecond = 500
export const acceptPause = 100

/**
 * What the clients of one listener may hold. Those of one address may be many behind a translation or a load balancer;
 * of a unix socket each connection is an identity of its own.
 */
export const defaultShares: ShareLimits = {
  address: { connections: 512, calls: 4096, bytes: 16 * 1024 * 1024 },
  identity: { connections: 512, calls: 4096, bytes: 12 * 1024 * 1024 },
  all: { connections: 4096, calls: 16_384, bytes: 24 * 1024 * 1024 },
}

/** Milliseconds between looks at the certificates of connected clients, and those that their calls have left after that. */
export const certificateInterval = 10_000
export const expiredGrace = 5000

/** Milliseconds that a client has to hang up after we did. */
export const lingerTime = 1000
