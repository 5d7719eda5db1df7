/**
 * What runs inside a virtual machine whose kernel has WireGuard. Network namespaces stand for two nodes, each behind an
 * address translation of its own, each with a pod; between them lies what stands for the outside, with a discovery
 * server. Each node is a process of its own with the controllers of the mesh. Each check is a line on the console.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { createNetns, inNetns } from '../../../src/linux/net/netns.ts'
import { filterTable } from '../../../src/linux/net/nftables.ts'
import * as packet from '../../../src/linux/net/packet.ts'
import * as net from '../../../src/linux/net/rtnetlink.ts'
import * as wireguard from '../../../src/linux/net/wireguard.ts'
import { reboot } from '../../../src/linux/system/reboot.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { tableName } from '../../../src/os/network/firewall/nft-script.ts'
import { discoveryMethods } from '../../../src/programs/discovery/methods.ts'
import { Registry } from '../../../src/programs/discovery/registry.ts'
import { servePlain } from '../../../src/rpc/server/server.ts'
import { loadGuestModules } from './guest-modules.ts'
import { nft, startMeshNode } from './mesh-node.ts'

/** The two sites: networks that know nothing of each other, and the address each is seen at. */
const sites = {
  a: { lan: '192.168.1', outside: '198.51.100', pods: '10.244.1' },
  b: { lan: '192.168.2', outside: '203.0.113', pods: '10.244.2' },
} as const
type Site = keyof typeof sites

const say = (line: string) => console.log(`GUEST ${line}`)
/** Seconds since the start of the machine: the same in all its processes. */
const uptime = () => readFileSync('/proc/uptime', 'utf8').split(' ')[0]
const space = (name: string) => `/run/net-${name}`

/** One node, alone with its namespace. */
async function node(site: Site): Promise<never> {
  const { lan, pods } = sites[site]
  const kernel = { mode: 'metal', files, net, packet, wireguard } as unknown as Kernel
  const own = { name: `node-${site}`, address: `${lan}.10/24`, gateway: `${lan}.1`, pods: `${pods}.0/24`, state: `/state-${site}` }
  startMeshNode(kernel, { ...own, discovery: 'http://198.51.100.1:3000/' }, ({ level, message, fields }) =>
    say(`log ${uptime()} ${site} ${level} ${message} ${JSON.stringify(fields)}`),
  )
  return new Promise<never>(() => {})
}

/** Links of a site: node and pod, and the router that hides them. */
async function build(site: Site): Promise<void> {
  const { lan, outside, pods } = sites[site]
  for (const name of [`nat-${site}`, `node-${site}`, `pod-${site}`]) createNetns(space(name))
  const root = net.openNetwork()
  const nat = net.openNetwork({ netns: space(`nat-${site}`) })
  const host = net.openNetwork({ netns: space(`node-${site}`) })
  const pod = net.openNetwork({ netns: space(`pod-${site}`) })
  const address = (network: net.Network, link: string, text: string) => network.addAddress({ link: network.indexOf(link), address: text })
  const route = (network: net.Network, gateway: string) =>
    network.addRoute({ family: 2, gateway, table: 254, priority: 0, scope: 0, type: 1, protocol: 4 })
  for (const network of [nat, host, pod]) network.setLink('lo', { up: true })
  root.addVeth({ name: `to-${site}`, up: true, peer: { name: 'wan', up: true }, peerNetns: space(`nat-${site}`) })
  nat.addVeth({ name: 'lan', up: true, peer: { name: 'eth0', up: true }, peerNetns: space(`node-${site}`) })
  host.addVeth({ name: 'pods', up: true, peer: { name: 'eth0', up: true }, peerNetns: space(`pod-${site}`) })
  address(root, `to-${site}`, `${outside}.1/24`)
  address(nat, 'wan', `${outside}.2/24`)
  address(nat, 'lan', `${lan}.1/24`)
  address(host, 'pods', `${pods}.1/24`)
  address(pod, 'eth0', `${pods}.2/24`)
  route(nat, `${outside}.1`)
  route(pod, `${pods}.1`)
  for (const name of [`nat-${site}`, `node-${site}`]) inNetns(space(name), () => writeFileSync('/proc/sys/net/ipv4/ip_forward', '1'))
  const child = inNetns(
    space(`nat-${site}`),
    () =>
      nft(`table ip nat {
  chain out { type nat hook postrouting priority 100; oifname "wan" masquerade; }
}
table ip guard {
  chain in { type filter hook input priority 0; policy drop; ct state established,related accept; iifname "lan" accept; }
  chain through { type filter hook forward priority 0; policy drop; ct state established,related accept; iifname "lan" accept; }
}
`) as never,
  ) as Promise<void>
  await child
}

async function holds(what: string, probe: () => unknown | Promise<unknown>, detail: () => unknown = () => ''): Promise<void> {
  const begin = performance.now()
  const end = begin + 300_000
  while (performance.now() < end) {
    if (await probe()) return say(`ok ${what} (${Math.round(performance.now() - begin)} ms, at ${uptime()} s)`)
    await Bun.sleep(100)
  }
  say(`failed ${what}: ${JSON.stringify(detail())}`)
}

/** Calls a server from inside a namespace; it replies with the address of the caller. */
async function ask(from: string, hostname: string, port: number): Promise<string> {
  const heard = Promise.withResolvers<string>()
  const timer = setTimeout(() => heard.resolve(''), 5_000)
  inNetns(space(from), () => {
    Bun.connect({
      hostname,
      port,
      socket: {
        data: (socket, data) => {
          heard.resolve(data.toString())
          socket.end()
        },
        close: () => heard.resolve(''),
        error: () => heard.resolve(''),
        connectError: () => heard.resolve(''),
      },
    }).catch(() => heard.resolve(''))
    return undefined
  })
  const answer = await heard.promise
  clearTimeout(timer)
  return answer
}

const answering = (hostname: string, port: number) =>
  Bun.listen({ hostname, port, socket: { open: (socket) => void socket.end(socket.remoteAddress), data() {} } })

function meshOf(site: Site) {
  using network = net.openNetwork({ netns: space(`node-${site}`) })
  const link = network.link('kubespan')
  const mesh = network.addresses().find(({ link: on, address }) => on === link?.index && address.startsWith('fd'))
  const peers = link ? inNetns(space(`node-${site}`), () => wireguard.wireguardDevice(link.index)).peers : []
  return { address: mesh?.address.split('/')[0] ?? '', mtu: link?.mtu, peer: peers[0], rules: network.rules(), routes: network.routes() }
}

async function story(): Promise<void> {
  using root = net.openNetwork()
  root.setLink('lo', { up: true })
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
  await build('a')
  await build('b')
  const registry = new Registry()
  await servePlain(
    { host: '198.51.100.1', port: 3000 },
    { methods: discoveryMethods(registry), store: new Store(), log: silent, roles: () => new Set<never>() },
  )
  answering('203.0.113.1', 8080)
  inNetns(space('pod-b'), () => answering('0.0.0.0', 7000))
  inNetns(space('pod-a'), () => answering('0.0.0.0', 7000))
  for (const site of ['a', 'b'])
    inNetns(space(`node-${site}`), () =>
      Bun.spawn([process.execPath, 'node', site], { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' }),
    )
  inNetns(space('node-b'), () => answering('::', 7001))

  await holds('both nodes have registered', () => registry.list('mesh').filter(({ data }) => data.length > 0).length === 2)
  const both = () => [meshOf('a'), meshOf('b')]
  await holds('a handshake through both translations', () => both().every(({ peer }) => (peer?.lastHandshake ?? 0) > 0), both)
  await holds('the peer is seen at the address of its translation', () => meshOf('a').peer?.endpoint === '203.0.113.2:51820', both)
  await holds('a pod reaches a pod, as itself', async () => (await ask('pod-a', '10.244.2.2', 7000)) === '10.244.1.2', both)
  await holds('and back', async () => (await ask('pod-b', '10.244.1.2', 7000)) === '10.244.2.2', both)
  await holds(
    'a node reaches a node at its mesh address',
    async () => (await ask('node-a', meshOf('b').address, 7001)) === meshOf('a').address,
    both,
  )
  await holds(
    'a node reaches a node at its own, hidden address',
    async () => (await ask('node-a', '192.168.2.10', 7001)).endsWith('192.168.1.10'),
    both,
  )
  await holds('an outside host is reached the normal way', async () => (await ask('node-a', '203.0.113.1', 8080)) === '198.51.100.2', both)
  await holds('rule, table and size of packets are as they should be', () => {
    const { mtu, rules, routes } = meshOf('a')
    const rule = rules.filter(({ priority, table, mark, mask }) => priority === 32500 && table === 180 && mark === 0x40 && mask === 0x60)
    return mtu === 1420 && rule.length === 2 && routes.filter(({ table }) => table === 180).length >= 2
  })
  await holds(
    'what nodes report of their peers is at the server',
    () => registry.list('mesh').every(({ endpoints }) => endpoints.length === 2),
    () => registry.list('mesh').map(({ endpoints }) => endpoints.length),
  )

  const router = net.openNetwork({ netns: space('nat-a') })
  router.removeAddress({ link: router.indexOf('wan'), address: '198.51.100.2/24' })
  router.addAddress({ link: router.indexOf('wan'), address: '198.51.100.77/24' })
  router.addRoute({ family: 2, gateway: '198.51.100.1', table: 254, priority: 0, scope: 0, type: 1, protocol: 4 })
  await holds(
    'a pod still reaches a pod after its site has another address',
    async () => (await ask('pod-a', '10.244.2.2', 7000)) === '10.244.1.2',
    both,
  )
  await holds('the change of the endpoint was followed', () => meshOf('b').peer?.endpoint === '198.51.100.77:51820', both)

  await holds(
    'the peer reports where it sees the node now',
    () => registry.list('mesh').some(({ endpoints }) => endpoints.length === 3),
    () => registry.list('mesh').map(({ endpoints }) => endpoints.length),
  )

  using host = net.openNetwork({ netns: space('node-a') })
  host.removeLink('kubespan')
  await holds('a link removed by hand comes back and works', async () => (await ask('pod-a', '10.244.2.2', 7000)) === '10.244.1.2', both)

  const marking = () => inNetns(space('node-a'), () => filterTable(tableName)).rules.length
  const before = marking()
  await (inNetns(space('node-a'), () => nft(`delete table inet ${tableName}\n`) as never) as Promise<void>)
  await holds('a packet filter removed by hand comes back', () => marking() === before && before > 0, marking)
}

const [role = '', site = ''] = process.argv.slice(2)
if (role === 'node') await node(site as Site)
else {
  try {
    loadGuestModules()
    await story()
  } catch (error) {
    say(`failed with ${error instanceof Error ? error.stack?.replaceAll('\n', ' | ') : String(error)}`)
  }
  say('end')
  await Bun.sleep(200)
  reboot('powerOff')
}
