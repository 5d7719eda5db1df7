import { expect, test } from 'bun:test'
import { createSocket, type RemoteInfo } from 'node:dgram'
import { fetchTftp } from '../../../../src/os/config/sources/tftp.ts'

/** A server of one file; `answer` changes what it sends. Each transfer has a port of its own. */
async function serving(
  file: Buffer,
  answer: (block: number, send: (message: Buffer) => void, usual: Buffer) => void = (_, send, usual) => send(usual),
) {
  const main = createSocket('udp4')
  const requests: string[] = []
  const opened = [main]
  main.on('message', (request, peer: RemoteInfo) => {
    requests.push(request.toString('latin1'))
    const own = createSocket('udp4')
    opened.push(own)
    const block = (number: number) => {
      const data = file.subarray((number - 1) * 512, number * 512)
      const head = Buffer.of(0, 3, number >> 8, number & 0xff)
      answer(number, (message) => own.send(message, peer.port, peer.address), Buffer.concat([head, data]))
    }
    own.on('message', (message) => {
      const confirmed = message.readUInt16BE(2)
      if (message.readUInt16BE(0) === 4 && confirmed * 512 <= file.length) block(confirmed + 1)
    })
    own.bind(0, '127.0.0.1', () => block(1))
  })
  await new Promise<void>((resolve) => main.bind(0, '127.0.0.1', resolve))
  return {
    url: `tftp://127.0.0.1:${main.address().port}`,
    requests,
    [Symbol.dispose]() {
      for (const socket of opened) socket.close()
    },
  }
}

const never = new AbortController().signal
const error = Buffer.from('\0\x05\0\x01no such file\0', 'latin1')

test.each([0, 100, 512, 100_000])('a file of %d bytes arrives whole', async (length) => {
  const file = Buffer.alloc(length, 'ab')
  using server = await serving(file)
  expect(await fetchTftp(`${server.url}/a%20folder/config.yaml`, 1 << 20, never)).toEqual(file)
  expect(server.requests).toEqual(['\0\x01a folder/config.yaml\0octet\0'])
})

test('blocks that are lost, come twice or are nonsense do no harm', async () => {
  const file = Buffer.alloc(2000, 'xyz')
  let lost = false
  using server = await serving(file, (block, send, usual) => {
    if (block === 2 && !lost) {
      lost = true
      return
    }
    send(Buffer.of(9, 9))
    send(usual)
    send(usual)
  })
  expect(await fetchTftp(`${server.url}/x`, 1 << 20, never)).toEqual(file)
}, 10_000)

test.each<[string, number, (url: string, signal: AbortSignal) => Promise<Buffer>]>([
  ['larger than 1024 bytes', 5000, (url, signal) => fetchTftp(`${url}/x`, 1024, signal)],
  ['no name of a file', 1, (url, signal) => Promise.try(() => fetchTftp(url, 1024, signal))],
])('%s is refused', async (reason, length, fetchIt) => {
  using server = await serving(Buffer.alloc(length))
  await expect(fetchIt(server.url, never)).rejects.toThrow(reason)
})

test('the reason of a server is passed on', async () => {
  using server = await serving(Buffer.alloc(1), (_, send) => send(error))
  await expect(fetchTftp(`${server.url}/x`, 1024, never)).rejects.toThrow('the server answered error 1: no such file')
})

test('a transfer ends with its attempt', async () => {
  using server = await serving(Buffer.alloc(1), () => {})
  await expect(fetchTftp(`${server.url}/x`, 1024, AbortSignal.timeout(50))).rejects.toThrow('it did not end in time')
})
