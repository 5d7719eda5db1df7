/** A shared address among three control planes with a real etcd: one owner, whatever is cut, and never two. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Network } from '../../src/linux/net/rtnetlink.ts'
import { authorityLifetime, newCA, newCertificate, year } from '../../src/pki/certificate.ts'
import { tlsKey } from '../../src/pki/key.ts'
import { eventually, Namespaces } from './lab/namespaces.ts'

/** The program that holds Kubernetes and etcd is a part of the image's build. */
const parts = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor/parts')
const kube = (existsSync(parts) ? readdirSync(parts) : [])
  .map((name) => join(parts, name, 'kube'))
  .find((path) => path.includes('/kube-') && existsSync(path))
if (!kube) console.log('skipped: needs etcd, which bun rootfs/build.ts builds')

const shared = '10.8.0.250'
const timeout = 240_000
/** An election is lost by who cannot speak for seconds: what else this host does must not be what decides. */
const first = ['nice', '-n', '-15']

interface Node {
  name: string
  address: string
  path: string
  network: Network
  etcd: Bun.Subprocess
  machine: Bun.Subprocess
}

let spaces: Namespaces
let hub: Network
let client: Network
let nodes: Node[] = []
/** Who were seen to have the address at one moment. */
const together: string[] = []
let watcher: ReturnType<typeof setInterval>
const dead = new Set<Node>()

const has = (node: Node) => !dead.has(node) && node.network.addresses().some(({ address }) => address === `${shared}/32`)
const owners = () => nodes.filter(has)

/**
 * Looks at one machine after another takes its time, in which the address may move: two have it together when one has it
 * before and after the other was seen with it.
 */
function watch(): void {
  const [first, ...more] = owners()
  if (first && more.length > 0 && has(first)) together.push([first, ...more].map(({ name }) => name).join(' and '))
}

/** The one owner, once there is one that `fits`. */
const owner = (fits: (node: Node) => boolean = () => true) =>
  eventually(
    () => {
      const [one, ...more] = owners()
      return one && more.length === 0 && fits(one) && one
    },
    'one has the address',
    timeout,
  )

function startMachine(node: Node): void {
  node.machine = Bun.spawn(
    [...first, 'nsenter', `--net=${node.path}`, process.execPath, join(import.meta.dir, 'lab/vip-machine.ts'), spaces.folder, shared],
    { stdin: 'ignore', stdout: 'ignore', stderr: process.env.SHOW ? 'inherit' : 'ignore' },
  )
}

beforeAll(async () => {
  if (!kube) return
  spaces = new Namespaces()
  hub = spaces.network(spaces.make('hub'))
  hub.addBridge({ name: 'br0', up: true })
  const ca = newCA({ subject: { commonName: 'etcd' }, kind: 'ecdsa', lifetime: authorityLifetime })
  const usage = ['serverAuth', 'clientAuth'] as const
  const pair = newCertificate({
    ca,
    subject: { commonName: 'node' },
    sans: { ips: ['127.0.0.1', '10.8.0.11', '10.8.0.12', '10.8.0.13'] },
    usage: [...usage],
    lifetime: year,
  })
  const file = (name: string, text: string) => {
    writeFileSync(join(spaces.folder, name), text, { mode: 0o600 })
    return join(spaces.folder, name)
  }
  const [caFile, crt, key] = [file('ca.crt', ca.crt), file('client.crt', pair.crt), file('client.key', tlsKey(pair.key))]
  const etcd = join(spaces.folder, 'etcd')
  symlinkSync(kube, etcd)
  const join2380 = [1, 2, 3].map((n) => `n${n}=https://10.8.0.1${n}:2380`).join(',')
  const cable = (name: string, address: string) => {
    const path = spaces.make(name)
    hub.addVeth({ name: `port-${name}`, master: hub.indexOf('br0'), up: true, peer: { name: 'eth0', up: true }, peerNetns: path })
    const network = spaces.network(path)
    network.addAddress({ link: network.indexOf('eth0'), address: `${address}/24` })
    return { path, network }
  }
  client = cable('client', '10.8.0.200').network
  nodes = [1, 2, 3].map((n) => {
    const address = `10.8.0.1${n}`
    const { path, network } = cable(`n${n}`, address)
    mkdirSync(join(spaces.folder, `data${n}`))
    const member = Bun.spawn(
      [
        [...first, 'nsenter', `--net=${path}`, etcd, '--name', `n${n}`, '--data-dir', join(spaces.folder, `data${n}`)],
        ['--listen-peer-urls', `https://${address}:2380`, '--initial-advertise-peer-urls', `https://${address}:2380`],
        ['--listen-client-urls', `https://${address}:2379,https://127.0.0.1:2379`, '--advertise-client-urls', `https://${address}:2379`],
        ['--initial-cluster', join2380, '--initial-cluster-state', 'new', '--initial-cluster-token', 'story'],
        ['--cert-file', crt, '--key-file', key, '--trusted-ca-file', caFile, '--client-cert-auth'],
        ['--peer-cert-file', crt, '--peer-key-file', key, '--peer-trusted-ca-file', caFile, '--peer-client-cert-auth'],
        ['--log-level', 'error'],
      ].flat(),
      { stdin: 'ignore', stdout: 'ignore', stderr: process.env.SHOW ? 'inherit' : 'ignore' },
    )
    const node = { name: `n${n}`, address, path, network, etcd: member } as Node
    startMachine(node)
    return node
  })
  watcher = setInterval(watch, 5)
}, 300_000)

afterAll(async () => {
  if (!kube) return
  clearInterval(watcher)
  for (const { etcd, machine } of nodes)
    for (const child of [machine, etcd]) {
      child.kill('SIGKILL')
      await child.exited
    }
  const folder = spaces.folder
  spaces.close()
  rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(!kube)('a shared address', () => {
  test('has one owner, and the link is informed of the owner', async () => {
    const one = await owner()
    const link = client.indexOf('eth0')
    const mac = one.network.link('eth0')!.hardwareAddress
    // Somebody who thought it was elsewhere is updated without a request (RFC 5227): NUD_STALE.
    client.putNeighbour({ link, address: shared, hardwareAddress: '02:00:00:00:00:99', state: 4 })
    const gone = new Promise((resolve) => one.machine.exited.then(resolve))
    one.machine.kill('SIGTERM')
    const since = performance.now()
    const next = await owner((node) => node !== one)
    console.log(`handed over ${Math.round(performance.now() - since)} ms after a clean stop`)
    await eventually(
      () => {
        const [holder] = owners()
        const neighbour = client.neighbours().find((known) => known.address === shared)?.hardwareAddress
        return holder !== undefined && neighbour === holder.network.link('eth0')!.hardwareAddress
      },
      'the announcement is heard',
      timeout,
    )
    expect(mac).not.toBe(next.network.link('eth0')!.hardwareAddress)
    await gone
    startMachine(one)
    expect(together).toEqual([])
  }, 900_000)

  test('is given up by an owner that is cut off, before another takes it', async () => {
    const one = await owner()
    // Cut behind the next switch: the owner's own link does not notice.
    hub.setLink(`port-${one.name}`, { master: 0 })
    const since = performance.now()
    await eventually(() => !owners().includes(one), 'it is given up', timeout)
    console.log(`given up ${Math.round(performance.now() - since)} ms after the cable was cut`)
    const next = await owner((node) => node !== one)
    console.log(`taken by another ${Math.round(performance.now() - since)} ms after the cable was cut`)
    hub.setLink(`port-${one.name}`, { master: hub.indexOf('br0') })
    // Who comes back takes nothing from the others.
    const reachable = 2 // NUD_REACHABLE
    const back = () => next.network.neighbours().some(({ address, state }) => address === one.address && (state & reachable) !== 0)
    await eventually(back, 'it is back', timeout)
    expect(next).not.toBe(one)
    await owner()
    expect(together).toEqual([])
  }, 900_000)

  test('moves on when its owner dies', async () => {
    const one = await owner()
    // All of a machine is gone at once.
    dead.add(one)
    hub.setLink(`port-${one.name}`, { up: false })
    one.machine.kill('SIGKILL')
    one.etcd.kill('SIGKILL')
    const since = performance.now()
    await owner((node) => node !== one)
    console.log(`taken by another ${Math.round(performance.now() - since)} ms after the owner's death`)
    expect(together).toEqual([])
  }, 900_000)
})
