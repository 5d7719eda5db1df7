/** WireGuard in user space beside the protocol's own implementation in Go, both configured by wg(8). */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newPrivateKey, publicKeyOf } from '../../src/wire/wireguard/keys.ts'
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
  readonly inner: string
}

const side = (name: string, outer: string, inner: string): Side => {
  const key = newPrivateKey()
  writeFileSync(join(folder, name), key, { mode: 0o600 })
  return { netns: spaces.make(name), link: name, key, publicKey: publicKeyOf(key), outer, inner }
}
const ours = side('wg-ours', '10.9.0.1', '10.10.0.1')
const theirs = side('wg-theirs', '10.9.0.2', '10.10.0.2')
const port = 51820
writeFileSync(join(folder, 'psk'), newPrivateKey(), { mode: 0o600 })

async function configure({ netns, link }: Side, ...args: string[]): Promise<string> {
  return succeeded(await run(['nsenter', `--net=${netns}`, wg, ...args.map((arg) => (arg === '@' ? link : arg))])).stdout
}

/** Sends bytes over TCP in the tunnel, and the other side sends them back; returns the SHA-256 of what came. */
async function echo(from: Side, to: Side, bytes: number): Promise<{ sent: string; received: string }> {
  const serve = `Bun.listen({ hostname: '${to.inner}', port: 7000, socket: { data(s, b) { s.w = Buffer.concat([s.w ?? Buffer.alloc(0), b]); s.w = s.w.subarray(s.write(s.w)) }, drain(s) { s.w = s.w.subarray(s.write(s.w)) } } }); console.log('ready')`
  const server = spawnIn(to.netns, [process.execPath, '-e', serve])
  const reader = server.stdout.getReader()
  await reader.read()
  const send = `const data = crypto.getRandomValues(new Uint8Array(65536)); const all = Buffer.concat(Array(${bytes / 65536}).fill(data));
const hash = new Bun.CryptoHasher('sha256'); let got = 0, sent = 0
Bun.connect({ hostname: '${to.inner}', port: 7000, socket: { open(s) { sent = s.write(all) }, drain(s) { sent += s.write(all.subarray(sent)) },
data(s, b) { hash.update(b); got += b.length; if (got === all.length) { console.log(JSON.stringify({ sent: new Bun.CryptoHasher('sha256').update(all).digest('hex'), received: hash.digest('hex') })); process.exit(0) } } } })`
  const client = spawnIn(from.netns, [process.execPath, '-e', send])
  const text = await new Response(client.stdout).text()
  server.kill()
  await server.exited
  return JSON.parse(text)
}

describe.skipIf(!wg || !go)('with another implementation', () => {
  beforeAll(async () => {
    const judge = await builtTool(folder, 'judge', 'tests/interop/wireguard', '.')
    const near = spaces.network(ours.netns)
    near.addVeth({ name: 'eth0', up: true, peer: { name: 'eth0' }, peerNetns: theirs.netns })
    const far = spaces.network(theirs.netns)
    far.setLink('eth0', { up: true })
    for (const [network, { outer }] of [
      [near, ours],
      [far, theirs],
    ] as const)
      network.addAddress({ link: network.link('eth0')?.index ?? 0, address: `${outer}/24` })
    programs.push(spawnIn(ours.netns, [process.execPath, main, 'wireguard', ours.link]))
    programs.push(spawnIn(theirs.netns, [judge, theirs.link]))
    for (const [one, other] of [
      [ours, theirs],
      [theirs, ours],
    ] as const) {
      await eventually(async () => (await run(['nsenter', `--net=${one.netns}`, wg, 'show', one.link])).code === 0, `wg show ${one.link}`)
      await configure(
        one,
        ...['set', '@', 'listen-port', `${port}`, 'private-key', join(folder, one.link), 'peer', other.publicKey],
        ...['preshared-key', join(folder, 'psk'), 'endpoint', `${other.outer}:${port}`, 'allowed-ips', `${other.inner}/32`],
      )
      const network = spaces.network(one.netns)
      network.addAddress({ link: network.link(one.link)?.index ?? 0, address: `${one.inner}/24` })
      network.setLink(one.link, { up: true, mtu: 1420 })
    }
  }, 120_000)

  test('wg shows what was set', async () => {
    const dump = await configure(ours, 'show', '@', 'dump')
    const [device = '', peer = ''] = dump.trim().split('\n')
    expect(device.split('\t').slice(0, 3)).toEqual([ours.key, ours.publicKey, `${port}`])
    expect(peer.split('\t')[0]).toBe(theirs.publicKey)
    expect(peer.split('\t')[3]).toBe(`${theirs.inner}/32`)
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
    expect(await programs[0]?.exited).toBe(0)
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
