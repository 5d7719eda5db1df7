/**
 * Three nodes of a mesh, of which two are behind address translations: `home` behind one that forwards a port other than 51820 to it,
 * `office` behind one that gives every destination a random port and admits nobody. Only `cloud` has an address of its own.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import { NetlinkSocket, netlinkProtocol } from '../../src/linux/net/netlink-socket.ts'
import { inNetns } from '../../src/linux/net/netns.ts'
import { hasTun } from '../../src/linux/net/tap.ts'
import { discoveryMethods } from '../../src/programs/discovery/methods.ts'
import { Registry } from '../../src/programs/discovery/registry.ts'
import { type Server, servePlain } from '../../src/rpc/server/server.ts'
import { run } from '../etcd/etcd-tools.ts'
import { type MeshNode, nft } from './lab/mesh-node.ts'
import { eventually, Namespaces, program, spawnIn } from './lab/namespaces.ts'

const needs = [...['nft', 'ping', 'nsenter'].filter((name) => !program(name)), ...(hasTun() ? [] : ['TUN devices'])]
if (needs.length > 0) console.log(`skipped: needs ${needs.join(', ')}`)

type Name = 'cloud' | 'home' | 'office'
type Peers = Partial<Record<Name, { state: string; endpoint: string }>>

const names = ['cloud', 'home', 'office'] as const
const discovery = 'http://192.0.2.1:3000/'
const addresses = { cloud: '192.0.2.2', home: '192.168.1.10', office: '192.168.2.10' } as const
const translations = { home: '198.51.100.2', office: '203.0.113.2' } as const
/** The port that the router of `home` forwards. */
const forwarded = 40_000
/** Seconds for which a translation is kept without packets. */
const kept = 30

const spaces = new Namespaces()
const outside = spaces.make('outside')
const nodes = new Map<Name, { netns: string; child: ReturnType<typeof spawnIn>; peers: Peers }>()
const registry = new Registry()
let server: Server

const inside = <T>(netns: string, act: () => Promise<T>): Promise<T> => inNetns(netns, () => act() as never) as Promise<T>

/** A cable from one namespace to another, with an address at each end. */
function cable(from: string, fromLink: string, fromAddress: string, to: string, toLink: string, toAddress: string): void {
  const [near, far] = [spaces.network(from), spaces.network(to)]
  near.addVeth({ name: fromLink, up: true, peer: { name: toLink, up: true }, peerNetns: to })
  near.addAddress({ link: near.indexOf(fromLink), address: `${fromAddress}/24` })
  if (toAddress) far.addAddress({ link: far.indexOf(toLink), address: `${toAddress}/24` })
}

const defaultRoute = (netns: string, gateway: string) =>
  spaces.network(netns).addRoute({ family: 2, gateway, table: 254, priority: 0, scope: 0, type: 1, protocol: 4 })

/** Forgets all translations, as routers do when their address changes. */
function forgetConnections(netns: string): void {
  const deleteConnections = (1 << 8) | 2 // NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE, without a filter
  using socket = new NetlinkSocket(netlinkProtocol.netfilter, { netns })
  socket.request('delete connections', '', deleteConnections, Uint8Array.of(2, 0, 0, 0)) // struct nfgenmsg, AF_INET
}

/** The router of a hidden node: what its translation does with the node's datagrams, and which others it admits. */
async function router(name: 'home' | 'office', nat: string): Promise<string> {
  const netns = spaces.make(`router-${name}`)
  const public_ = translations[name]
  const upstream = public_.replace(/\.2$/, '.1')
  cable(outside, `to-${name}`, upstream, netns, 'wan', public_)
  defaultRoute(netns, upstream)
  inNetns(netns, () => {
    for (const [path, value] of [
      ['ipv4/ip_forward', 1],
      ['netfilter/nf_conntrack_udp_timeout', kept],
      ['netfilter/nf_conntrack_udp_timeout_stream', kept],
    ])
      writeFileSync(`/proc/sys/net/${path}`, `${value}`)
  })
  const guard = 'policy drop; ct state established,related accept; iifname "lan" accept;'
  await inside(netns, () =>
    nft(`${nat}
table ip guard {
  chain in { type filter hook input priority 0; ${guard} }
  chain through { type filter hook forward priority 0; ${guard} ct status dnat accept; }
}
`),
  )
  return netns
}

const forwarding = `table ip nat {
  chain out {
    type nat hook postrouting priority 100;
    oifname "wan" udp sport 51820 masquerade to :${forwarded};
    oifname "wan" masquerade;
  }
  chain in { type nat hook prerouting priority -100; iifname "wan" fib daddr type local udp dport ${forwarded} dnat to ${addresses.home}:51820; }
}`
const random = 'table ip nat { chain out { type nat hook postrouting priority 100; oifname "wan" masquerade fully-random; }; }'

function start(name: Name, netns: string, gateway: string): void {
  const number = names.indexOf(name)
  const state = join(spaces.folder, `state-${name}`)
  const node: MeshNode = { name, address: `${addresses[name]}/24`, gateway, pods: `10.244.${number}.0/24`, discovery, state }
  const child = spawnIn(netns, [process.execPath, join(import.meta.dir, 'lab/mesh-process.ts'), JSON.stringify(node)])
  const started = { netns, child, peers: {} as Peers }
  nodes.set(name, started)
  const follow = async () => {
    let rest = ''
    for await (const bytes of child.stdout) {
      const lines = (rest + Buffer.from(bytes)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) started.peers = JSON.parse(line)
    }
  }
  void follow()
  void (async () => {
    for await (const bytes of child.stderr) if (process.env.SHOW) process.stderr.write(bytes)
  })()
}

const peer = (of: Name, name: Name) => nodes.get(of)?.peers[name]

/** Whether a node reaches another at the address that only the other's own network knows. */
async function reaches(from: Name, to: Name): Promise<boolean> {
  const netns = nodes.get(from)?.netns ?? ''
  return (await run(['nsenter', `--net=${netns}`, 'ping', '-c', '1', '-W', '1', addresses[to]])).code === 0
}

const everyPair = names.flatMap((from) => names.filter((to) => to !== from).map((to) => [from, to] as const))

beforeAll(async () => {
  if (needs.length > 0) return
  inNetns(outside, () => writeFileSync('/proc/sys/net/ipv4/ip_forward', '1'))
  const cloud = spaces.make('cloud')
  cable(outside, 'to-cloud', '192.0.2.1', cloud, 'eth0', '')
  const home = spaces.make('home')
  const office = spaces.make('office')
  const atHome = await router('home', forwarding)
  const atOffice = await router('office', random)
  cable(atHome, 'lan', '192.168.1.1', home, 'eth0', '')
  cable(atOffice, 'lan', '192.168.2.1', office, 'eth0', '')
  server = await inside(outside, () =>
    servePlain(
      { host: '192.0.2.1', port: 3000 },
      { methods: discoveryMethods(registry), store: new Store(), log: silent, roles: () => new Set<never>() },
    ),
  )
  start('cloud', cloud, '192.0.2.1')
  start('home', home, '192.168.1.1')
  start('office', office, '192.168.2.1')
}, 60_000)

afterAll(async () => {
  for (const { child } of nodes.values()) {
    child.kill()
    await child.exited
  }
  await server?.close()
  spaces.close()
})

test.skipIf(needs.length > 0)(
  'all nodes reach each other, also the two hidden ones',
  async () => {
    await eventually(() => everyPair.every(([of, name]) => peer(of, name)?.state === 'up'), 'every peer is up')
    for (const [from, to] of everyPair) expect(`${from} to ${to}: ${await reaches(from, to)}`).toBe(`${from} to ${to}: true`)
    // The public address with the port of WireGuard is wrong: the right one was seen by the node in the cloud.
    expect(peer('office', 'home')?.endpoint).toBe(`${translations.home}:${forwarded}`)
    expect(peer('cloud', 'home')?.endpoint).toBe(`${translations.home}:${forwarded}`)
    const port = Number(peer('home', 'office')?.endpoint.split(':')[1])
    expect(port).not.toBe(Number(peer('cloud', 'office')?.endpoint.split(':')[1]))
  },
  150_000,
)

test.skipIf(needs.length > 0)(
  'a hidden node whose site gets another public address is reached there by all, and keepalives keep the other translation',
  async () => {
    const another = '198.51.100.77'
    const netns = join(spaces.folder, 'router-home')
    const network = spaces.network(netns)
    network.removeAddress({ link: network.indexOf('wan'), address: `${translations.home}/24` })
    network.addAddress({ link: network.indexOf('wan'), address: `${another}/24` })
    defaultRoute(netns, '198.51.100.1')
    forgetConnections(netns)
    const moved = `${another}:${forwarded}`
    await eventually(
      () => peer('cloud', 'home')?.endpoint === moved && peer('office', 'home')?.endpoint === moved,
      'the new address is known',
    )
    await eventually(() => reaches('office', 'home'), 'office reaches home')
    for (const [from, to] of everyPair) expect(`${from} to ${to}: ${await reaches(from, to)}`).toBe(`${from} to ${to}: true`)
  },
  300_000,
)
