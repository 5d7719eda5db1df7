import { afterEach, beforeEach, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exists } from '../../../src/linux/fs/files.ts'
import { check, libc } from '../../../src/linux/libc.ts'
import { listenDatagrams, peerCredentials } from '../../../src/linux/net/socket.ts'

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
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
