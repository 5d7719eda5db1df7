/** Asks one time server what time it is: a simple client (RFC 5905 section 14), one packet there and one back. */

import { clockOffset, type NtpPacket, ntpMode, readNtp, toNtpTime, writeNtp } from '../../wire/ntp.ts'

/** What a server said. Nanoseconds. */
export interface ServerTime {
  /** How far its clock is ahead of ours. */
  readonly offset: bigint
  /** The time on the way, there and back. */
  readonly delay: bigint
  readonly stratum: number
  /** 1 and 2: at the end of this day (UTC) a second is added or left out. */
  readonly leap: number
  /** Seconds to the clock that all ask in the end, and how far off that may be. */
  readonly rootDelay: number
  readonly rootDispersion: number
  /** Which of the server's addresses answered. */
  readonly address: string
}

/** A time server that does not answer, or not well; the message names it. */
export class TimeServerError extends Error {
  override name = 'TimeServerError'
  constructor(
    readonly server: string,
    readonly reason: 'address' | 'timeout' | 'refused' | 'answer',
    detail: string,
    /** What a server says that refuses (RFC 5905 section 7.4): `RATE`, `DENY`, `RSTR`, … */
    readonly code = '',
  ) {
    super(`time server "${server}": ${detail}`)
  }
}

/** How a server is asked. */
export interface AskOptions {
  /** Nanoseconds since 1970. */
  readonly now: () => bigint
  /** Milliseconds for one address; it is asked twice in this time, as packets get lost. */
  readonly timeout?: number
  readonly signal?: AbortSignal
  /** The address to ask alone, when the name was resolved before. */
  readonly address?: string
}

const usualPort = 123
const mostAddresses = 4

/** Asks a server given as `host`, `host:port` or an address; of several addresses the first that answers. */
export async function askTimeServer(server: string, { now, timeout = 3_000, signal, address: only }: AskOptions): Promise<ServerTime> {
  const { host, port } = target(server)
  let last: unknown
  for (const address of only ? [only] : await addressesOf(server, host)) {
    signal?.throwIfAborted()
    try {
      return await exchange(server, address, port, now, timeout, signal)
    } catch (error) {
      last = error
    }
  }
  throw last
}

function target(server: string): { host: string; port: number } {
  const [, bracketed, named, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+))(?::(\d{1,5}))?$/.exec(server) ?? []
  const bare = /^[0-9a-fA-F:.]+$/.test(server) && server.split(':').length > 2 ? server : undefined
  const host = bare ?? bracketed ?? named
  const number = port === undefined || bare ? usualPort : Number(port)
  if (host === undefined || number < 1 || number > 65_535)
    throw new TimeServerError(server, 'address', 'is no server: give a name or an address, with ":port" when it is not 123')
  return { host, port: number }
}

async function addressesOf(server: string, host: string): Promise<string[]> {
  try {
    const found = await Bun.dns.lookup(host)
    return [...new Set(found.map(({ address }) => address))].slice(0, mostAddresses)
  } catch {
    throw new TimeServerError(server, 'address', `no address found for "${host}"`)
  }
}

async function exchange(
  server: string,
  hostname: string,
  port: number,
  now: () => bigint,
  timeout: number,
  signal?: AbortSignal,
): Promise<ServerTime> {
  const done = Promise.withResolvers<ServerTime>()
  done.promise.catch(() => {}) // it may fail before anybody waits
  const fail = (reason: TimeServerError['reason'], detail: string, code?: string) =>
    done.reject(new TimeServerError(server, reason, detail, code))
  // What an answer must bring back: numbers of chance instead of our clock, so that nobody can answer who has not seen the question.
  const asked = new Map<bigint, bigint>()
  const socket = await Bun.udpSocket({
    connect: { hostname, port },
    socket: {
      data(_, datagram) {
        const arrived = toNtpTime(now())
        const packet = readAnswer(datagram)
        const sent = packet && asked.get(packet.originTime)
        if (!packet || sent === undefined) return // not an answer to us
        const problem = problemOf(packet)
        if (problem) return fail('answer', problem, refusal(packet))
        const { offset, delay } = clockOffset({ sent, received: packet.receiveTime, transmitted: packet.transmitTime, arrived })
        const { stratum, leap, rootDelay, rootDispersion } = packet
        done.resolve({ offset, delay, stratum, leap, rootDelay, rootDispersion, address: hostname })
      },
      // Bun hands over the error alone, whatever its types say
      error(...given) {
        const error = given.at(-1) as Error & { code?: string }
        fail('refused', error.code ?? error.message)
      },
    },
  })
  const ask = () => {
    const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).readBigUInt64BE()
    asked.set(nonce, toNtpTime(now()))
    socket.send(writeNtp({ mode: ntpMode.client, transmitTime: nonce }))
  }
  const again = setTimeout(ask, timeout / 2)
  const end = setTimeout(() => fail('timeout', `no answer within ${timeout / 1000} s`), timeout)
  const abort = () => done.reject(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    ask()
    return await done.promise
  } finally {
    clearTimeout(again)
    clearTimeout(end)
    signal?.removeEventListener('abort', abort)
    socket.close()
  }
}

function readAnswer(datagram: Uint8Array): NtpPacket | undefined {
  try {
    const packet = readNtp(datagram)
    return packet.mode === ntpMode.server ? packet : undefined
  } catch {
    return undefined
  }
}

/** Why an answer is not to be believed (RFC 5905 sections 7.4 and 9.2); undefined when it is. */
function problemOf({ leap, stratum, reference, receiveTime, transmitTime }: NtpPacket): string | undefined {
  if (stratum === 0) {
    const code = refusal({ stratum, reference })
    return `refuses to tell the time${code && `: ${code}`}`
  }
  if (leap === 3 || stratum > 15) return 'its own clock is not set'
  if (receiveTime === 0n || transmitTime === 0n) return 'the answer holds no time'
  return undefined
}

const refusal = ({ stratum, reference }: Pick<NtpPacket, 'stratum' | 'reference'>) =>
  stratum === 0 ? String.fromCharCode(...reference).replace(/[^ -~]/g, '') : ''
