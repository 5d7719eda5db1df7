/** Lines over UDP, a datagram each. */
import { pause } from '../../../timing/pause.ts'
import { within } from '../../../timing/within.ts'
import { type Carrier, connectTimeout } from './carrier.ts'
import type { Endpoint } from './endpoint.ts'

/** Datagrams that are sent at once, and milliseconds after them: a receiver's socket holds only so many. */
const burst = 128
const spacing = 5

/** Opens a socket to the receiver. A refusal (ICMP port unreachable) counts as a lost connection. */
export async function datagramCarrier({ host, port, url }: Endpoint, signal: AbortSignal): Promise<Carrier> {
  const lost = new AbortController()
  const late = () => new Error(`no address of "${host}" within ${connectTimeout / 1000} s`)
  const [found] = await within(Bun.dns.lookup(host), connectTimeout, late)
  if (!found) throw new Error(`no address found for "${host}"`)
  const refused = (error: unknown) => {
    const { code } = error as { code?: string }
    lost.abort(new Error(`the receiver at ${url} refuses datagrams: ${code ?? String(error)}`, { cause: error }))
  }
  const opening = Bun.udpSocket({
    connect: { hostname: found.address, port },
    // Bun passes the error alone, unlike its types.
    socket: { data() {}, error: (...given) => refused(given.at(-1)) },
  })
  const socket = await within(opening, connectTimeout, () => new Error(`no socket to ${url} within ${connectTimeout / 1000} s`))
  let sent = 0
  return {
    lost: lost.signal,
    get sent() {
      return sent
    },
    acknowledged: () => sent,
    async send(texts) {
      for (let at = 0; at < texts.length && !signal.aborted; ) {
        lost.signal.throwIfAborted()
        const some = texts.slice(at, at + burst)
        const count = sendSome(socket, some, refused)
        at += count
        sent += count
        if (count < some.length || at < texts.length) await pause(spacing, signal)
      }
    },
    close: () => socket.close(),
  }
}

/** Sends as many as the socket takes; returns how many. */
function sendSome(socket: Bun.udp.ConnectedSocket<'buffer'>, texts: readonly string[], refused: (error: unknown) => void): number {
  try {
    return socket.sendMany([...texts])
  } catch (error) {
    refused(error)
    return 0
  }
}
