/**
 * Notices servers that vanished: while calls are under way on a connection that is silent, the server is pinged, and a connection on
 * which the answer does not come is closed. Without it a stream of events waits for ever for a machine that lost its power.
 */
import type { Session } from '../http2/session.ts'

/** Milliseconds. */
export interface KeepaliveTimes {
  /** Silence after which the server is pinged. */
  readonly silence: number
  /** What it has to answer; slow machines take their time. */
  readonly answer: number
  /** Between two pings: servers of gRPC end connections of clients that ping more often than every five minutes. */
  readonly interval: number
}

export const keepaliveTimes: KeepaliveTimes = { silence: 60_000, answer: 60_000, interval: 310_000 }

/** Watches over a connection until it is closed. */
export function keepAlive(session: Session, { silence, answer, interval }: KeepaliveTimes = keepaliveTimes): void {
  /** When the last ping was sent, and whether its answer is missing. */
  let pinged = Number.NEGATIVE_INFINITY
  let waiting = false
  const look = () => {
    const now = performance.now()
    // Whatever is heard after the ping shows that the server is there.
    if (session.lastHeard > pinged) waiting = false
    if (waiting && now - pinged >= answer) session.destroy(new Error('server did not answer a keepalive ping'))
    else if (!waiting && session.size > 0 && now - session.lastHeard >= silence && now - pinged >= interval) {
      pinged = now
      waiting = true
      session.ping(() => {
        waiting = false
      })
    }
  }
  const timer = setInterval(look, Math.min(silence, answer) / 4)
  timer.unref()
  session.whenClosed(() => clearInterval(timer))
}
