import { ptr } from 'bun:ffi'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeLockPipe } from '../../../src/linux/fs/fifo.ts'
import { exists } from '../../../src/linux/fs/files.ts'
import { check, libc } from '../../../src/linux/libc.ts'
import { listenDatagrams, peerCredentials, sendDescriptors } from '../../../src/linux/net/socket.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  connect: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  recvmsg: { args: ['i32', 'ptr', 'i32'], returns: 'i64' },
  sendto: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'u32'], returns: 'i64' },
})

/** Sends one datagram to a unix socket, as a program that logs does. */
function sendDatagram(path: string, datagram: Uint8Array): void {
  const address = Buffer.from(`\x01\0${path}\0`) // AF_UNIX
  const fd = check('socket', c().socket(1, 2, 0)) // SOCK_DGRAM
  try {
    check('sendto', c().sendto(fd, datagram, datagram.length, 0, address, address.length), path)
  } finally {
    closeSync(fd)
  }
}

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'socket-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('datagrams keep their boundaries', async () => {
  const path = join(folder, 'log')
  const got: string[] = []
  const all = Promise.withResolvers<void>()
  const socket = listenDatagrams(path, (datagram) => {
    if (got.push(Buffer.from(datagram).toString()) === 5) all.resolve()
  })
  for (const text of ['one', 'two\nlines', '', 'four', 'five']) sendDatagram(path, Buffer.from(text))
  await all.promise
  expect(got).toEqual(['one', 'two\nlines', '', 'four', 'five'])
  socket.close()
  socket.close()
  expect(exists(path)).toBe(false)
  expect(() => sendDatagram(path, Buffer.from('x'))).toThrow('ENOENT')
})

test('a path that is too long is refused with a message', () => {
  expect(() => listenDatagrams(join(folder, 'x'.repeat(120)), () => {})).toThrow('ENAMETOOLONG (a unix socket path has at most 107 bytes)')
})

test('the peer of a unix socket is known', async () => {
  const path = join(folder, 's')
  const peer = Promise.withResolvers<number>()
  const server = createServer((socket: Socket & { _handle?: { fd: number } }) => {
    peer.resolve(peerCredentials(socket._handle?.fd ?? -1).pid)
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const client = connect(path)
  client.on('error', () => {})
  expect(await peer.promise).toBe(process.pid)
  client.destroy()
  server.close()
})

test('a descriptor that was sent keeps its pipe open until the receiver ends', async () => {
  const path = join(folder, 's')
  const lock = makeLockPipe()
  const sent = Promise.withResolvers<void>()
  const server = createServer((socket: Socket & { _handle?: { fd: number } }) => {
    sendDescriptors(socket._handle?.fd ?? -1, Buffer.from('lock'), [lock.writer])
    lock.handedOver()
    sent.resolve()
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const address = Buffer.from(`\x01\0${path}\0`) // AF_UNIX
  const client = check('socket', c().socket(1, 1, 0)) // SOCK_STREAM
  check('connect', c().connect(client, address, address.length))
  await sent.promise
  const [data, control] = [Buffer.alloc(16), Buffer.alloc(24)]
  const vector = BigUint64Array.of(BigInt(ptr(data)), 16n)
  const message = BigUint64Array.of(0n, 0n, BigInt(ptr(vector)), 1n, BigInt(ptr(control)), 24n, 0n)
  expect(data.toString('utf8', 0, check('recvmsg', c().recvmsg(client, message, 0)))).toBe('lock')
  closeSync(client)
  const order: string[] = []
  const released = lock.released.then(() => order.push('released'))
  // Everything that could have released it has been closed by now, except the copy that was received.
  await new Promise((resolve) => setImmediate(resolve))
  order.push('received descriptor closed')
  closeSync(control.readInt32LE(16))
  await released
  expect(order).toEqual(['received descriptor closed', 'released'])
  server.close()
})

test('a lock that is given up is released', async () => {
  const lock = makeLockPipe()
  lock.close()
  lock.close()
  await lock.released
})
