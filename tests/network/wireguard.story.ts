/** WireGuard in user space beside the protocol's own implementation in Go, both configured by wg(8). */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openCapture } from '../../src/linux/net/capture.ts'
import { DatagramPort } from '../../src/linux/net/datagrams.ts'
import { inNetns } from '../../src/linux/net/netns.ts'
import { openPacket } from '../../src/linux/net/packet.ts'
import { CookieJar } from '../../src/wire/wireguard/cookie.ts'
import { initiate } from '../../src/wire/wireguard/handshake.ts'
import { keyBytes, newPrivateKey, publicKeyOf } from '../../src/wire/wireguard/keys.ts'
import { initiationAt, messageType } from '../../src/wire/wireguard/message.ts'
import { parseEndpoint } from '../../src/wire/wireguard/socket-address.ts'
import { x25519Key } from '../../src/wire/x509/x25519.ts'
import { succeeded } from '../cluster/cluster.ts'
import { builtTool, run } from '../etcd/etcd-tools.ts'
import { eventually, Namespaces, program, spawnIn } from './lab/namespaces.ts'

const wg = program('wg') ?? ''
const go = program('go')
const folder = mkdtempSync('/run/ichor-wireguard-')
const spaces = new Namespaces()
const main = join(import.meta.dir, '../../src/main.ts')
const programs: Bun.Subprocess[] = []

interface Side {
  readonly netns: string
  readonly link: string
  readonly key: string
  readonly publicKey: string
  readonly outer: string
  readonly outer6: string
  readonly inner: string
  readonly inner6: string
}

const side = (name: string, host: number): Side => {
  const key = newPrivateKey()
  writeFileSync(join(folder, name), key, { mode: 0o600 })
  const addresses = { outer: `10.9.0.${host}`, outer6: `fd09::${host}`, inner: `10.10.0.${host}`, inner6: `fd10::${host}` }
  return { netns: spaces.make(name), link: name, key, publicKey: publicKeyOf(key), ...addresses }
}
const ours = side('wg-ours', 1)
const theirs = side('wg-theirs', 2)
const port = 51820
writeFileSync(join(folder, 'psk'), newPrivateKey(), { mode: 0o600 })

async function configure({ netns, link }: Side, ...args: string[]): Promise<string> {
  return succeeded(await run(['nsenter', `--net=${netns}`, wg, ...args.map((arg) => (arg === '@' ? link : arg))])).stdout
}

/** Sends bytes over TCP in the tunnel, and the other side sends them back; returns the SHA-256 of what came. */
async function echo(from: Side, to: Side, bytes: number, address = to.inner): Promise<{ sent: string; received: string }> {
  const serve = `Bun.listen({ hostname: '${address}', port: 7000, socket: { data(s, b) { s.w = Buffer.concat([s.w ?? Buffer.alloc(0), b]); s.w = s.w.subarray(s.write(s.w)) }, drain(s) { s.w = s.w.subarray(s.write(s.w)) } } }); console.log('ready')`
  const server = spawnIn(to.netns, [process.execPath, '-e', serve])
  const reader = server.stdout.getReader()
  await reader.read()
  const send = `const data = crypto.getRandomValues(new Uint8Array(65536)); const all = Buffer.concat(Array(${bytes / 65536}).fill(data));
const hash = new Bun.CryptoHasher('sha256'); let got = 0, sent = 0
Bun.connect({ hostname: '${address}', port: 7000, socket: { open(s) { sent = s.write(all) }, drain(s) { sent += s.write(all.subarray(sent)) },
data(s, b) { hash.update(b); got += b.length; if (got === all.length) { console.log(JSON.stringify({ sent: new Bun.CryptoHasher('sha256').update(all).digest('hex'), received: hash.digest('hex') })); process.exit(0) } } } })`
  const client = spawnIn(from.netns, [process.execPath, '-e', send])
  const text = await new Response(client.stdout).text()
  server.kill()
  await server.exited
  return JSON.parse(text)
}

/** Sends datagrams of a length in the tunnel, each when the other side has sent the one before back; returns how many came as they were sent. */
async function echoDatagrams(from: Side, to: Side, length: number): Promise<number> {
  const serve = `await Bun.udpSocket({ hostname: '${to.inner}', port: 7001, socket: { data(s, b, port, address) { s.send(b, port, address) } } }); console.log('ready')`
  const server = spawnIn(to.netns, [process.execPath, '-e', serve])
  await server.stdout.getReader().read()
  const send = `const data = crypto.getRandomValues(new Uint8Array(${length})); let good = 0, count = 0
const socket = await Bun.udpSocket({ connect: { hostname: '${to.inner}', port: 7001 }, socket: { data(s, b) { good += b.equals(data); count++; if (count < 50) s.send(data); else { console.log(good); process.exit(0) } } } })
socket.send(data); setTimeout(() => { console.log(good); process.exit(0) }, 20000)`
  const client = spawnIn(from.netns, [process.execPath, '-e', send])
  const text = await new Response(client.stdout).text()
  server.kill()
  await server.exited
  return Number(text)
}

const ping = (from: Side, address: string, length: number) =>
  run(['nsenter', `--net=${from.netns}`, 'ping', '-q', '-c', '3', '-i', '0.2', '-W', '5', '-s', `${length}`, address])

/** Captures the messages of WireGuard that arrive at a side, each with the IPv4 packet around it. */
function captured({ netns }: Side, take: (message: Uint8Array, packet: Buffer) => void): { close(): void } {
  const link = { index: spaces.network(netns).link('eth0')?.index ?? 0, name: 'eth0' }
  const [ethernet, headers] = [14, 14 + 20 + 8]
  return openCapture(
    link,
    (frame) => {
      const copy = Buffer.from(frame)
      const isUdp = copy.length > headers && copy.readUInt16BE(12) === 0x0800 && copy[ethernet + 9] === 17
      if (isUdp && [20, 22].some((at) => copy.readUInt16BE(ethernet + at) === port)) take(copy.subarray(headers), copy.subarray(ethernet))
    },
    { netns },
  )
}

/** Starts a program on each side, with a tunnel between them. */
async function connect(sides: readonly [Side, Side], argv: readonly (readonly string[])[]): Promise<void> {
  const [near, far] = [spaces.network(sides[0].netns), spaces.network(sides[1].netns)]
  near.addVeth({ name: 'eth0', up: true, peer: { name: 'eth0' }, peerNetns: sides[1].netns })
  far.setLink('eth0', { up: true })
  for (const [index, one] of sides.entries()) {
    const other = sides[1 - index] ?? one
    const network = index === 0 ? near : far
    for (const address of [`${one.outer}/24`, `${one.outer6}/64`]) network.addAddress({ link: network.link('eth0')?.index ?? 0, address })
    programs.push(spawnIn(one.netns, [...(argv[index] ?? []), one.link]))
    await eventually(async () => (await run(['nsenter', `--net=${one.netns}`, wg, 'show', one.link])).code === 0, `wg show ${one.link}`)
    const peer = ['peer', other.publicKey, 'preshared-key', join(folder, 'psk'), 'endpoint', `${other.outer}:${port}`]
    const own = ['listen-port', `${port}`, 'private-key', join(folder, one.link)]
    await configure(one, ...['set', '@', ...own, ...peer, 'allowed-ips', `${other.inner}/32,${other.inner6}/128`])
    for (const address of [`${one.inner}/24`, `${one.inner6}/64`]) network.addAddress({ link: network.link(one.link)?.index ?? 0, address })
    network.setLink(one.link, { up: true, mtu: 1420 })
  }
}

const ourProgram = [process.execPath, main, 'wireguard']

describe.skipIf(!wg)('with the same implementation', () => {
  const sides = [side('wg-one', 3), side('wg-other', 4)] as const
  const [one, other] = sides
  beforeAll(() => connect(sides, [ourProgram, ourProgram]), 60_000)

  /** Sets the MTU of a link on both sides. */
  const setMtu = (linkOf: (one: Side) => string, mtu: number) => {
    for (const each of sides) spaces.network(each.netns).setLink(linkOf(each), { mtu })
  }

  test.each<[string, (one: Side) => string, number]>([
    ['the link', ({ link }) => link, 1280],
    ['the path', () => 'eth0', 1400],
    ['the link', ({ link }) => link, 9000],
    ['the path', () => 'eth0', 9100],
  ])(
    'the MTU of %s may change',
    async (_, linkOf, mtu) => {
      setMtu(linkOf, mtu)
      for (const address of [other.inner, other.inner6]) {
        const { sent, received } = await echo(one, other, 2 << 20, address)
        expect(received).toBe(sent)
      }
    },
    60_000,
  )
})

describe.skipIf(!wg || !go)('with another implementation', () => {
  beforeAll(async () => {
    const judge = await builtTool(folder, 'judge', 'tests/interop/wireguard', '.')
    await connect([ours, theirs], [ourProgram, [judge]])
  }, 120_000)

  test('wg shows what was set', async () => {
    const dump = await configure(ours, 'show', '@', 'dump')
    const [device = '', peer = ''] = dump.trim().split('\n')
    expect(device.split('\t').slice(0, 3)).toEqual([ours.key, ours.publicKey, `${port}`])
    expect(peer.split('\t')[0]).toBe(theirs.publicKey)
    expect(peer.split('\t')[3]).toBe(`${theirs.inner}/32,${theirs.inner6}/128`)
  })

  test.each([
    ['ours', ours, theirs],
    ['the other', theirs, ours],
  ])(
    'a connection from %s carries 16 MiB both ways',
    async (_, from, to) => {
      const { sent, received } = await echo(from, to, 16 << 20)
      expect(received).toBe(sent)
      const [, time = '0'] = (await configure(ours, 'show', '@', 'latest-handshakes')).trim().split('\t')
      expect(Number(time)).toBeGreaterThan(1.7e9)
    },
    120_000,
  )

  test.each([
    ['ours', ours, theirs],
    ['the other', theirs, ours],
  ])(
    'IPv6, pings and datagrams from %s pass',
    async (_, from, to) => {
      const { sent, received } = await echo(from, to, 4 << 20, to.inner6)
      expect(received).toBe(sent)
      for (const address of [to.inner, to.inner6]) for (const length of [56, 20_000]) succeeded(await ping(from, address, length))
      for (const length of [1, 1300, 9000, 60_000]) expect(await echoDatagrams(from, to, length)).toBe(50)
    },
    120_000,
  )

  test('a message that is sent once more is dropped', async () => {
    const echoes = async () =>
      Number(
        (await run(['nsenter', `--net=${ours.netns}`, 'cat', '/proc/net/snmp'])).stdout.match(/Icmp: \d+ \d+ \d+ (?:\d+ ){5}(\d+)/)?.[1],
      )
    const messages: Buffer[] = []
    const capture = captured(ours, (message, packet) => {
      if (message[0] === messageType.transport) messages.push(packet)
    })
    const before = await echoes()
    succeeded(await ping(theirs, ours.inner, 56))
    capture.close()
    expect(messages.length).toBeGreaterThanOrEqual(3)
    expect((await echoes()) - before).toBe(3)
    const link = spaces.network(theirs.netns).link('eth0')
    const target = spaces.network(ours.netns).link('eth0')?.hardwareAddress ?? ''
    const sender = { index: link?.index ?? 0, name: 'eth0', hardwareAddress: link?.hardwareAddress ?? '' }
    const socket = openPacket(sender, { family: 'ip4', port: 1 }, () => {}, { netns: theirs.netns })
    const received = async () => Number((await configure(ours, 'show', '@', 'transfer')).split('\t')[1])
    const bytes = await received()
    for (const message of messages) socket.send(message, target)
    socket.close()
    succeeded(await ping(theirs, ours.inner, 56))
    // What came after the copies has been received: they have been seen too.
    expect((await echoes()) - before).toBe(6)
    const each = messages.reduce((sum, packet) => sum + packet.length, 0)
    expect((await received()) - bytes).toBeLessThan(each + 200)
  }, 60_000)

  test('under load a handshake needs the cookie that was sent to its address', async () => {
    /** Cookies that were sent, and initiations with one. */
    const seen = { cookies: 0, proofs: 0 }
    const captures = [ours, theirs].map((each) =>
      captured(each, (message) => {
        if (message[0] === messageType.cookieReply) seen.cookies++
        if (message[0] === messageType.initiation && message.subarray(initiationAt.mac2).some((byte) => byte !== 0)) seen.proofs++
      }),
    )
    const flood = inNetns(theirs.netns, () => new DatagramPort('inet', 0))
    const target = parseEndpoint(`${ours.outer}:${port}`)?.socketAddress ?? expect.unreachable()
    const strangers = new CookieJar(keyBytes(ours.publicKey))
    const stranger = x25519Key(keyBytes(newPrivateKey()))
    const identity = { publicKey: keyBytes(ours.publicKey), presharedKey: new Uint8Array(32) }
    const { message } = initiate(stranger, identity as never, 1, new Uint8Array(12))
    strangers.sign(message, 0)
    const timer = setInterval(() => {
      for (let count = 0; count < 20; count++) flood.queue(message, 0, message.length, target)
      flood.flush()
    }, 20)
    try {
      await eventually(() => seen.cookies > 0, 'cookies are sent', 20_000)
      const peer = ['peer', ours.publicKey, 'preshared-key', join(folder, 'psk'), 'endpoint', `${ours.outer}:${port}`]
      await configure(theirs, 'set', '@', 'peer', ours.publicKey, 'remove')
      await configure(theirs, 'set', '@', ...peer, 'allowed-ips', `${ours.inner}/32,${ours.inner6}/128`, 'persistent-keepalive', '25')
      const handshakes = async () => Number((await configure(theirs, 'show', '@', 'latest-handshakes')).trim().split('\t')[1])
      await eventually(async () => (await handshakes()) > 0, 'a handshake under load', 60_000)
      expect(seen.proofs).toBeGreaterThan(0)
    } finally {
      clearInterval(timer)
      flood.close()
      for (const each of captures) each.close()
    }
    succeeded(await ping(theirs, ours.inner, 56))
  }, 120_000)

  test('the tunnel may run over IPv6, whose packets are not fragmented', async () => {
    const move = async (key: 'outer' | 'outer6') => {
      for (const [one, other] of [
        [ours, theirs],
        [theirs, ours],
      ] as const) {
        const address = key === 'outer' ? other.outer : `[${other.outer6}]`
        await configure(one, 'set', '@', 'peer', other.publicKey, 'endpoint', `${address}:${port}`)
      }
    }
    const fragments = async () =>
      Number((await run(['nsenter', `--net=${ours.netns}`, 'cat', '/proc/net/snmp6'])).stdout.match(/Ip6FragCreates\s+(\d+)/)?.[1])
    const before = await fragments() // of the pings
    await move('outer6')
    const { sent, received } = await echo(ours, theirs, 4 << 20)
    expect(received).toBe(sent)
    expect(await configure(ours, 'show', '@', 'endpoints')).toContain(`[${theirs.outer6}]:${port}`)
    expect(await fragments()).toBe(before)
    await move('outer')
  }, 120_000)

  test('a peer is followed to another address', async () => {
    const network = spaces.network(theirs.netns)
    const link = network.link('eth0')?.index ?? 0
    network.removeAddress({ link, address: `${theirs.outer}/24` })
    network.addAddress({ link, address: '10.9.0.77/24' })
    const { sent, received } = await echo(theirs, ours, 1 << 20)
    expect(received).toBe(sent)
    expect(await configure(ours, 'show', '@', 'endpoints')).toContain(`10.9.0.77:${port}`)
  }, 60_000)

  test('a change that is refused changes nothing', async () => {
    const before = await configure(ours, 'showconf', '@')
    const { code } = await run(['nsenter', `--net=${ours.netns}`, wg, 'set', ours.link, 'listen-port', '0x1ffff'])
    expect(code).not.toBe(0)
    expect(await configure(ours, 'showconf', '@')).toBe(before)
  })

  test('the program ends with its link', async () => {
    spaces.network(ours.netns).removeLink(ours.link)
    expect(await Promise.race(programs.map(({ exited }) => exited))).toBe(0)
  })
})

afterAll(async () => {
  for (const one of programs) {
    one.kill()
    await one.exited
  }
  spaces.close()
  rmSync(folder, { recursive: true, force: true })
})
