/** Files of TFTP servers (RFC 1350), where machines that start through a network have nothing better. */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { unbracketed } from '../../../wire/host-port.ts'
import { blockSize, readTftp, tftpPort, writeAcknowledgement, writeReadRequest } from '../../../wire/tftp/message.ts'

/** Milliseconds without an answer after which the last message is sent again, and how often that happens. */
const retransmission = 1_000
const attempts = 5

/** Fetches a file of at most `limit` bytes. Rejects with a one-line error, also when the signal fires. */
export function fetchTftp(address: string, limit: number, signal: AbortSignal): Promise<Buffer> {
  const { hostname, port, pathname } = new URL(address)
  const host = unbracketed(hostname)
  const socket = createSocket({ type: isIPv6(host) ? 'udp6' : 'udp4' })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const pieces: Buffer[] = []
  let size = 0
  let next = 1
  let sent = writeReadRequest(decodeURIComponent(pathname.slice(1)))
  /** The server answers from a port of its own (RFC 1350, section 4). */
  let to = { address: host, port: Number(port) || tftpPort }
  let from: RemoteInfo | undefined
  let tries = 0
  const send = () => {
    if (tries++ === attempts) reject(new Error(`no answer within ${(attempts * retransmission) / 1000} s`))
    else socket.send(sent, to.port, to.address, (error) => error && reject(error))
  }
  const timer = setInterval(send, retransmission)
  const ended = () => reject(new Error('it did not end in time'))
  signal.addEventListener('abort', ended, { once: true })
  socket.on('error', reject)
  socket.on('message', (datagram, peer) => {
    if (from && (peer.address !== from.address || peer.port !== from.port)) return
    const message = readOrIgnore(datagram)
    if (message?.kind === 'error') reject(new Error(`the server answered error ${message.code}${message.text ? `: ${message.text}` : ''}`))
    if (message?.kind !== 'data' || message.block !== next) return
    from ??= peer
    to = { address: peer.address, port: peer.port }
    size += message.bytes.length
    if (size > limit) return reject(new Error(`larger than ${limit} bytes`))
    pieces.push(Buffer.from(message.bytes))
    sent = writeAcknowledgement(next)
    next = (next + 1) & 0xffff
    tries = 0
    send()
    timer.refresh()
    if (message.bytes.length < blockSize) resolve(Buffer.concat(pieces))
  })
  if (signal.aborted) ended()
  else socket.bind(0, send)
  return promise.finally(() => {
    clearInterval(timer)
    signal.removeEventListener('abort', ended)
    socket.close()
  })
}

function readOrIgnore(datagram: Uint8Array) {
  try {
    return readTftp(datagram)
  } catch {
    return undefined // the right one may still arrive
  }
}
