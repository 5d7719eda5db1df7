/** Queries one time server: a simple client (RFC 5905 section 14), one packet each way. */

import { messageOf } from '../../wire/error-message.ts'
import { type HostPort, parseHostPort } from '../../wire/host-port.ts'
import { clockOffset, type NtpPacket, ntpMode, readNtp, toNtpTime, writeNtp } from '../../wire/ntp.ts'

/** The answer of a server. Nanoseconds. */
export interface ServerTime {
  /** How far its clock is ahead of the local one. */
  readonly offset: bigint
  /** The round-trip time. */
  readonly delay: bigint
  readonly stratum: number
  /** 1 and 2: a second is inserted, or deleted, at the end of this day (UTC). */
  readonly leap: number
  /** Distance to the reference clock in seconds, and its largest error. */
  readonly rootDelay: number
  readonly rootDispersion: number
  /** Which of the server's addresses answered. */
  readonly address: string
}

/** A time server that does not answer, or not correctly; the message names it. */
export class TimeServerError extends Error {
  override name = 'TimeServerError'
  constructor(
    readonly server: string,
    readonly reason: 'address' | 'timeout' | 'refused' | 'answer',
    detail: string,
    /** The kiss code of a server that refuses (RFC 5905 section 7.4): `RATE`, `DENY`, `RSTR`, … */
    readonly code = '',
  ) {
    super(`time server "${server}": ${detail}`)
  }
}

/** How a server is queried. */
export interface AskOptions {
  /** Nanoseconds since 1970. */
  readonly now: () => bigint
  /** Milliseconds for one address; the request is sent twice in this time, as packets get lost. */
  readonly timeout?: number
  readonly signal?: AbortSignal | undefined
  /** The only address to query, when the name was resolved before. */
  readonly address?: string | undefined
}

const usualPort = 123
const mostAddresses = 4

/** Queries a server given as `host`, `host:port` or an address; of several addresses the first that answers. */
export async function queryTimeServer(server: string, { now, timeout = 3_000, signal, address: only }: AskOptions): Promise<ServerTime> {
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

function target(server: string): HostPort {
  const parsed = parseHostPort(server, usualPort)
  if (!parsed || parsed.port === 0)
    throw new TimeServerError(server, 'address', 'is no server: give a name or an address, with ":port" when it is not 123')
  return parsed
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
  done.promise.catch(() => {}) // it may fail before it is awaited
  const fail = (reason: TimeServerError['reason'], detail: string, code?: string) =>
    done.reject(new TimeServerError(server, reason, detail, code))
  const refused = (error: unknown) => fail('refused', (error as { code?: string }).code ?? messageOf(error))
  // The nonce that an answer must return: random numbers instead of the local time, so that only a host that saw the request can answer.
  const requests = new Map<bigint, bigint>()
  const socket = await Bun.udpSocket({
    connect: { hostname, port },
    socket: {
      data(_, datagram) {
        const arrived = toNtpTime(now())
        const packet = readAnswer(datagram)
        const sent = packet && requests.get(packet.originTime)
        if (!packet || sent === undefined) return // not an answer to this request
        const problem = problemOf(packet)
        if (problem) return fail('answer', problem, refusal(packet))
        const { offset, delay } = clockOffset({ sent, received: packet.receiveTime, transmitted: packet.transmitTime, arrived })
        const { stratum, leap, rootDelay, rootDispersion } = packet
        done.resolve({ offset, delay, stratum, leap, rootDelay, rootDispersion, address: hostname })
      },
      // Bun passes the error alone, unlike its types
      error: (...given) => refused(given.at(-1)),
    },
  })
  const send = () => {
    const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).readBigUInt64BE()
    requests.set(nonce, toNtpTime(now()))
    try {
      socket.send(writeNtp({ mode: ntpMode.client, transmitTime: nonce }))
    } catch (error) {
      refused(error) // the network went away
    }
  }
  const retry = setTimeout(send, timeout / 2)
  const end = setTimeout(() => fail('timeout', `no answer within ${timeout / 1000} s`), timeout)
  const abort = () => done.reject(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    send()
    return await done.promise
  } finally {
    clearTimeout(retry)
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

/** Why an answer is rejected (RFC 5905 sections 7.4 and 9.2); undefined when it is accepted. */
function problemOf({ leap, stratum, reference, receiveTime, transmitTime }: NtpPacket): string | undefined {
  if (stratum === 0) {
    const code = refusal({ stratum, reference })
    return `refuses to answer${code && `: ${code}`}`
  }
  if (leap === 3 || stratum > 15) return 'its own clock is not set'
  if (receiveTime === 0n || transmitTime === 0n) return 'the answer holds no time'
  return undefined
}

const refusal = ({ stratum, reference }: Pick<NtpPacket, 'stratum' | 'reference'>) =>
  stratum === 0 ? String.fromCharCode(...reference).replace(/[^ -~]/g, '') : ''
