import { afterAll, beforeAll, expect, test } from 'bun:test'
import { closeSync, writeFileSync } from 'node:fs'
import { check, libc } from '../../src/linux/libc.ts'
import { inNetns } from '../../src/linux/net/netns.ts'
import { filterTable, watchFilterTable } from '../../src/linux/net/nftables.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { applyFirewall, configFirewall } from '../../src/os/network/controllers/firewall.ts'
import { tableName } from '../../src/os/network/firewall/nft-script.ts'
import { NodeAddress } from '../../src/os/network/resources/node-address.ts'
import { parseIp } from '../../src/wire/ip.ts'
import { eventually, Namespaces, program, running } from './lab/namespaces.ts'

/** Debian's nftables; the image has its own. Without it the story is skipped with that reason. */
const nft = program('nft')
const story = test.skipIf(!nft)
if (!nft) console.log('skipped: needs nft (apt-get install nftables)')

let spaces: Namespaces
let machine: ReturnType<typeof running>
/** What a node listens on for others, and a node port; what listens on its loopback alone is not to be had at all. */
const tcp = [2379, 2380, 6443, 10250, 30000, 50000, 50001]
const udp = [4789, 30001, 51820]
const loopback = [3172, 7445, 10248, 10257, 10259]
/** Where the node's resolver listens for its pods. */
const resolver = { address: '169.254.116.108', port: 53 }
const place = (name: string) => `${spaces.folder}/${name}`

async function runIn(netns: string, argv: string[], input = ''): Promise<string> {
  const child = Bun.spawn(['nsenter', `--net=${netns}`, ...argv], { stdin: Buffer.from(input), stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(err.trim())
  return out
}

const listeners: (() => void)[] = []
const serve = (where: string, hostname: string, port: number) => {
  const server = inNetns(place(where), () => Bun.listen({ hostname, port, socket: { open: (socket) => void socket.end('x'), data() {} } }))
  listeners.push(() => server.stop(true))
  return server
}

/** A program in a namespace that answers each datagram with itself: made there, for such a socket is not made at once. */
async function echo(where: string, ports: readonly number[]): Promise<void> {
  const script = `for (const port of ${JSON.stringify(ports)}) await Bun.udpSocket({ hostname: '::', port, socket: { data: (s, d, p, a) => void s.send(d, p, a) } }); console.log('ready')`
  const child = Bun.spawn(['nsenter', `--net=${place(where)}`, process.execPath, '-e', script], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  listeners.push(() => child.kill())
  await child.stdout.getReader().read()
}

beforeAll(async () => {
  if (!nft) return
  spaces = new Namespaces()
  for (const name of ['node', 'outside', 'pod']) spaces.make(name)
  const host = spaces.network(place('outside'))
  host.addVeth({ name: 'to-node', up: true, peer: { name: 'eth0', up: true }, peerNetns: place('node') })
  for (const address of ['10.9.0.1/24', '10.9.0.9/24']) host.addAddress({ link: host.indexOf('to-node'), address })
  host.addAddress({ link: host.indexOf('to-node'), address: 'fd00:9::1/64', flags: 2 })
  const node = spaces.network(place('node'))
  node.addAddress({ link: node.indexOf('eth0'), address: '10.9.0.2/24' })
  node.addAddress({ link: node.indexOf('lo'), address: `${resolver.address}/32` })
  // Somebody on the same cable who knows of it sends to it through the node.
  host.putRoute({ destination: `${resolver.address}/32`, gateway: '10.9.0.2', link: host.indexOf('to-node') })
  node.addAddress({ link: node.indexOf('eth0'), address: 'fd00:9::2/64', flags: 2 })
  node.addVeth({ name: 'pod0', up: true, peer: { name: 'eth0', up: true }, peerNetns: place('pod') })
  node.addAddress({ link: node.indexOf('pod0'), address: '10.244.0.1/24' })
  const pod = spaces.network(place('pod'))
  pod.addAddress({ link: pod.indexOf('eth0'), address: '10.244.0.2/24' })
  pod.addRoute({ family: 2, gateway: '10.244.0.1', table: 254, priority: 0, scope: 0, type: 1, protocol: 4 })
  inNetns(place('node'), () => writeFileSync('/proc/sys/net/ipv4/ip_forward', '1'))
  for (const port of tcp) serve('node', '::', port)
  for (const port of loopback) serve('node', '127.0.0.1', port)
  serve('node', resolver.address, resolver.port)
  serve('pod', '0.0.0.0', 8080)
  await echo('node', udp)
  machine = running(
    configFirewall,
    applyFirewall({
      run: async (script) => void (await runIn(place('node'), [nft, '-f', '-'], script)),
      look: () => filterTable(tableName, { netns: place('node') }),
      watch: (signal) => watchFilterTable(tableName, { netns: place('node'), signal }),
    }),
  )
  machine.store.put(NodeAddress, 'routed-no-k8s', { addresses: ['10.9.0.2/24', 'fd00:9::2/64'], sortAlgorithm: 'v1' })
})
afterAll(() => {
  machine?.stop()
  for (const stop of listeners) stop()
  spaces?.close()
})

/** Begins a connection; reports whether it is established so far. */
function beginning(from: string, hostname: string, port: number): { open: boolean } {
  const state = { open: false }
  inNetns(place(from), () => {
    Bun.connect({
      hostname,
      port,
      socket: {
        open(socket) {
          state.open = true
          socket.end()
        },
        data() {},
        error() {},
        connectError() {},
      },
    }).catch(() => {})
    return undefined
  })
  return state
}

/**
 * The TCP ports that let somebody in. It waits for those that should as long as a slow machine takes, and for the others
 * so long that one that is open would have been found.
 */
async function open(
  expected: readonly number[],
  to = '10.9.0.2',
  from = 'outside',
  ports: readonly number[] = [...tcp, ...loopback],
): Promise<number[]> {
  const probes = ports.map((port) => ({ port, state: beginning(from, to, port) }))
  const found = () => probes.filter(({ state }) => state.open).map(({ port }) => port)
  const deadline = performance.now() + 120_000
  await Bun.sleep(500)
  while (!expected.every((port) => found().includes(port)) && performance.now() < deadline) await Bun.sleep(20)
  return found()
}

/** Whether a port that should let somebody in does. */
async function reaches(from: string, hostname: string, port: number): Promise<boolean> {
  const probes = beginning(from, hostname, port)
  const deadline = performance.now() + 120_000
  while (!probes.open && performance.now() < deadline) await Bun.sleep(5)
  return probes.open
}

/** The UDP ports that answer; it waits for those that should, and what else came by then counts too. */
async function answering(expected: readonly number[], to = '10.9.0.2'): Promise<number[]> {
  const script = `const heard = new Set(); const expected = ${JSON.stringify(expected)}
const s = await Bun.udpSocket({ socket: { data: (_, __, port) => heard.add(port) } })
for (let turn = 0; turn < 300; turn++) {
  for (const port of ${JSON.stringify(udp)}) s.send('x', port, ${JSON.stringify(to)})
  await Bun.sleep(200)
  if (turn > 0 && expected.every((port) => heard.has(port))) break
}
console.log(JSON.stringify([...heard].sort((a, b) => a - b))); process.exit(0)`
  return JSON.parse(await runIn(place('outside'), [process.execPath, '-e', script]))
}

const c = libc({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  connect: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  send: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
})

/** Whether an echo comes back (RFC 792, RFC 4443), requested over a raw socket of the outside. */
function echoed(to: string): boolean {
  const six = to.includes(':')
  const address = Buffer.alloc(six ? 28 : 16)
  address.writeUInt16LE(six ? 10 : 2, 0)
  address.set(parseIp(to)!, six ? 8 : 4)
  // Kind, code, checksum, id, number; the kernel makes the checksum of IPv6 itself.
  const probes = six ? Buffer.of(128, 0, 0, 0, 0, 7, 0, 1) : Buffer.of(8, 0, 0xf7, 0xf7, 0, 7, 0, 1)
  const fd = inNetns(place('outside'), () => check('socket', c().socket(six ? 10 : 2, 3, six ? 58 : 1), to))
  try {
    const timeout = Buffer.alloc(16)
    timeout.writeBigInt64LE(60n, 0)
    check('setsockopt', c().setsockopt(fd, 1, 20, timeout, timeout.length), to)
    check('connect', c().connect(fd, address, address.length), to)
    check('send', c().send(fd, probes, BigInt(probes.length), 0), to)
    const answer = Buffer.alloc(256)
    for (;;) {
      if (Number(c().recv(fd, answer, BigInt(answer.length), 0)) <= 0) return false
      if (answer[six ? 0 : 20] === (six ? 129 : 0)) return true
    }
  } finally {
    closeSync(fd)
  }
}

const head = 'version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n'
const byDefault = (ingress: string) => `---\napiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: ${ingress}\n`
const rule = (name: string, selected: string, ingress: string, protocol = 'tcp') =>
  `---\napiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: ${name}\nportSelector: {ports: [${selected}], protocol: ${protocol}}\ningress: [${ingress}]\n`
const say = async (...texts: string[]) => {
  await machine.os.settled()
  const before = machine.entries.length
  machine.store.put(MachineConfig, 'v1alpha1', head + texts.join(''))
  await machine.os.settled()
  expect(
    machine.entries
      .slice(before)
      .filter(({ level }) => level === 'warn')
      .map(({ fields }) => fields.error),
  ).toEqual([])
}
const list = () => runIn(place('node'), [nft!, 'list', 'table', 'inet', tableName])

story('without a word every port is open', async () => {
  await say()
  expect(await open(tcp)).toEqual(tcp)
  expect(await reaches('outside', resolver.address, resolver.port)).toBe(true)
  expect(await answering(udp)).toEqual(udp)
})

story('blocked by default: only what a rule opens, and only to its sources', async () => {
  await say(byDefault('block'))
  expect(await open([])).toEqual([])
  expect(await open([], resolver.address, 'outside', [resolver.port])).toEqual([])
  expect(await answering([])).toEqual([])
  await say(
    byDefault('block'),
    rule('api', '50000', '{subnet: 10.9.0.0/24, except: 10.9.0.9/32}'),
    rule('ports', '30000-30100', '{subnet: "fd00:9::/64"}'),
    rule('mesh', '51820', '{subnet: 0.0.0.0/0}', 'udp'),
  )
  expect(await open([50000])).toEqual([50000])
  expect(await open([30000], 'fd00:9::2')).toEqual([30000])
  expect(await answering([51820])).toEqual([51820])
})

story('blocked by default: the machine itself still reaches out, and itself', async () => {
  const server = serve('outside', '10.9.0.1', 0)
  expect(await reaches('node', '10.9.0.1', server.port)).toBe(true)
  for (const port of [10250, ...loopback]) expect(await reaches('node', '127.0.0.1', port)).toBe(true)
})

story('blocked by default: between the machine and its pods nothing is in the way', async () => {
  await say(byDefault('block'))
  expect(await reaches('node', '10.244.0.2', 8080)).toBe(true)
  expect(await reaches('pod', resolver.address, resolver.port)).toBe(true)
  expect(await open(tcp, '10.244.0.1', 'pod')).toEqual(tcp)
})

story('blocked by default: neighbours are found and echoes answered', async () => {
  await say(byDefault('block'))
  const { chains, rules } = filterTable(tableName, { netns: place('node') })
  expect(chains.map(({ name, policy }) => [name, policy]).sort()).toEqual([
    ['ingress', 0],
    ['prerouting', 1],
  ])
  expect(rules.length).toBeGreaterThan(8)
  // A neighbour that was forgotten is resolved again, with ICMPv6, before anything else can pass.
  const outside = spaces.network(place('outside'))
  await runIn(place('outside'), ['ip', 'neigh', 'flush', 'all'])
  await say(byDefault('block'), rule('api', '50000', '{subnet: "fd00:9::/64"}'))
  expect(await reaches('outside', 'fd00:9::2', 50000)).toBe(true)
  expect(outside.neighbours().some(({ address }) => address === 'fd00:9::2')).toBe(true)
  for (const to of ['10.9.0.2', 'fd00:9::2']) expect(echoed(to)).toBe(true)
})

story('open by default: a rule keeps all but its sources out of its ports', async () => {
  await say(byDefault('accept'), rule('kubelet', '10250', '{subnet: 10.9.0.9/32}'), rule('vxlan', '4789', '{subnet: 10.9.0.9/32}', 'udp'))
  const others = tcp.filter((port) => port !== 10250)
  expect(await open(others)).toEqual(others)
  expect(await open(others, 'fd00:9::2')).toEqual(others)
  expect(await answering([30001, 51820])).toEqual([30001, 51820])
})

story('what another hand deletes, empties or adds is set right', async () => {
  await say(byDefault('block'), rule('api', '50000', '{subnet: 10.9.0.0/24}'))
  const before = (await list()).replaceAll(/handle \d+/g, '')
  const interferences = [
    `delete table inet ${tableName}`,
    `flush chain inet ${tableName} ingress`,
    `insert rule inet ${tableName} ingress accept`,
    `add chain inet ${tableName} more`,
    `add chain inet ${tableName} ingress { policy accept; }`,
  ]
  for (const interference of interferences) {
    await runIn(place('node'), [nft!, interference])
    await eventually(async () => (await list().catch(() => '')) === before, interference, 60_000)
  }
  expect(await open([50000])).toEqual([50000])
})

story(
  'a table is replaced at once: while it changes nothing gets through',
  async () => {
    const probes: ReturnType<typeof beginning>[] = []
    for (let turn = 0; turn < 10; turn++) {
      const changing = say(byDefault('block'), rule('turn', String(40_000 + turn), '{subnet: 10.9.0.0/24}'))
      for (let n = 0; n < 5; n++) probes.push(beginning('outside', '10.9.0.2', 10250))
      await changing
    }
    await Bun.sleep(500)
    expect(probes.filter((each) => each.open)).toEqual([])
  },
  60_000,
)

story('others are left alone, and the table goes with the last word', async () => {
  await runIn(place('node'), [nft!, 'add', 'table', 'inet', 'kube-proxy'])
  await say(byDefault('block'))
  expect(await runIn(place('node'), [nft!, 'list', 'tables'])).toContain('inet talos')
  await say()
  const tables = await runIn(place('node'), [nft!, 'list', 'tables'])
  expect(tables).not.toContain('talos')
  expect(tables).toContain('kube-proxy')
  expect(await open(tcp)).toEqual(tcp)
})
