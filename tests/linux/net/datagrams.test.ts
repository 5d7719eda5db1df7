/** Two ports on the loopback link. */
import { afterEach, describe, expect, test } from 'bun:test'
import { DatagramPort } from '../../../src/linux/net/datagrams.ts'

const open: DatagramPort[] = []
function port(family: 'inet' | 'inet6' = 'inet'): DatagramPort {
  const made = new DatagramPort(family, 0)
  open.push(made)
  return made
}

afterEach(() => {
  for (const one of open.splice(0)) one.close()
})

/** The socket address of a port on 127.0.0.1. */
const addressOf = ({ port }: DatagramPort) => Uint8Array.of(2, 0, port >> 8, port & 255, 127, 0, 0, 1, ...new Uint8Array(8))

/** Waits for a number of datagrams; returns each as text of its length and first byte, with the port of its source. */
async function received(at: DatagramPort, count: number): Promise<{ length: number; first: number; port: number }[]> {
  const all: { length: number; first: number; port: number }[] = []
  for (let tries = 0; all.length < count && tries < 200; tries++) {
    at.receive((datagram, from) =>
      all.push({ length: datagram.length, first: datagram[0] ?? -1, port: ((from[2] ?? 0) << 8) | (from[3] ?? 0) }),
    )
    if (all.length < count) await Bun.sleep(5)
  }
  return all
}

/** Queues datagrams of these lengths, one behind the other in memory; the first byte of each is its number. */
function queue(from: DatagramPort, to: Uint8Array | readonly Uint8Array[], lengths: readonly number[]): void {
  const buffer = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0))
  let at = 0
  for (const [index, length] of lengths.entries()) {
    if (length > 0) buffer[at] = index & 255
    from.queue(buffer, at, length, to instanceof Uint8Array ? to : (to[index] ?? new Uint8Array()))
    at += length
  }
}

describe('datagrams', () => {
  test.each([
    ['of one length', Array(200).fill(100)],
    ['of one length with a shorter one', [...Array(10).fill(1000), 7, ...Array(5).fill(1000)]],
    ['of growing length', [1, 2, 3, 4, 500, 501, 502]],
    ['of falling length', [502, 501, 500, 4, 3, 2, 1]],
    ['that are longer than one message', Array(10).fill(32_000)],
  ])('%s arrive as they were queued', async (_, lengths: number[]) => {
    const [one, other] = [port(), port()]
    queue(one, addressOf(other), lengths)
    one.flush()
    expect(await received(other, lengths.length)).toEqual(lengths.map((length, index) => ({ length, first: index & 255, port: one.port })))
  })

  test('go to their destinations', async () => {
    const [one, other, third] = [port(), port(), port()]
    const [here, there] = [addressOf(other), addressOf(third)]
    queue(one, [here, here, there, there, here], Array(5).fill(50))
    one.flush()
    expect((await received(other, 3)).map(({ first }) => first)).toEqual([0, 1, 4])
    expect((await received(third, 2)).map(({ first }) => first)).toEqual([2, 3])
  })

  test('that cannot be sent do not stop the others', async () => {
    const [one, other] = [port(), port()]
    const nowhere = Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, ...new Uint8Array(8)) // port 0: EINVAL
    const here = addressOf(other)
    queue(one, [nowhere, nowhere, nowhere, here, here, nowhere, here], Array(7).fill(50))
    one.flush()
    expect((await received(other, 3)).map(({ first }) => first)).toEqual([3, 4, 6])
  })

  test('from several buffers are sent together', async () => {
    const [one, other] = [port(), port()]
    for (let index = 0; index < 3; index++) queue(one, addressOf(other), [20, 20])
    one.flush()
    expect((await received(other, 6)).map(({ first }) => first)).toEqual([0, 1, 0, 1, 0, 1])
  })
})

test('a port without datagrams gives none', () => {
  expect(port().receive(() => expect.unreachable())).toBe(0)
})

test('a port in use is refused', () => {
  const { port: used } = port()
  expect(() => new DatagramPort('inet', used)).toThrow('EADDRINUSE')
})
