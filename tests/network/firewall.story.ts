import { afterAll, beforeAll, expect, test } from 'bun:test'
import { inNetns } from '../../src/linux/netns.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { applyFirewall, configFirewall } from '../../src/os/network/controllers/firewall.ts'
import { NodeAddress } from '../../src/os/network/resources/node-address.ts'
import { Namespaces, running } from './namespaces.ts'

/** Debian's nftables; the image has its own. Without it the story is skipped and says so. */
const nft = Bun.which('nft') ?? Bun.which('/usr/sbin/nft')
const story = test.skipIf(!nft)
if (!nft) console.log('skipped: needs nft (apt-get install nftables)')

let spaces: Namespaces
let machine: ReturnType<typeof running>
const ports = [4240, 10250, 30000, 50000]
const place = (name: string) => `${spaces.folder}/${name}`

async function runIn(netns: string, argv: string[], input = ''): Promise<string> {
  const child = Bun.spawn(['nsenter', `--net=${netns}`, ...argv], { stdin: Buffer.from(input), stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(err.trim())
  return out
}

const listeners: { stop(force: boolean): void }[] = []

beforeAll(() => {
  spaces = new Namespaces()
  spaces.make('node')
  const host = spaces.network(spaces.make('outside'))
  host.addVeth({ name: 'to-node', up: true, peer: { name: 'eth0', up: true }, peerNetns: place('node') })
  for (const address of ['10.9.0.1/24', '10.9.0.9/24']) host.addAddress({ link: host.indexOf('to-node'), address })
  host.addAddress({ link: host.indexOf('to-node'), address: 'fd00:9::1/64', flags: 2 })
  const node = spaces.network(place('node'))
  node.addAddress({ link: node.indexOf('eth0'), address: '10.9.0.2/24' })
  node.addAddress({ link: node.indexOf('eth0'), address: 'fd00:9::2/64', flags: 2 })
  inNetns(place('node'), () => {
    for (const port of ports)
      listeners.push(Bun.listen({ hostname: '::', port, socket: { open: (socket) => void socket.end('x'), data() {} } }))
  })
  machine = running(
    configFirewall,
    applyFirewall(async (script) => void (await runIn(place('node'), [nft!, '-f', '-'], script))),
  )
  machine.store.put(NodeAddress, 'routed-no-k8s', { addresses: ['10.9.0.2/24', 'fd00:9::2/64'], sortAlgorithm: 'v1' })
})
afterAll(() => {
  machine?.stop()
  for (const listener of listeners) listener.stop(true)
  spaces?.close()
})

/** The ports that let us in, asked from outside. */
async function open(to = '10.9.0.2'): Promise<number[]> {
  const asked = ports.map(async (port) => {
    const heard = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => heard.resolve(false), 700)
    inNetns(place('outside'), () => {
      Bun.connect({
        hostname: to,
        port,
        socket: { open: () => heard.resolve(true), data() {}, error: () => heard.resolve(false), connectError: () => heard.resolve(false) },
      }).catch(() => heard.resolve(false))
      return undefined
    })
    const found = await heard.promise
    clearTimeout(timer)
    return found ? [port] : []
  })
  return (await Promise.all(asked)).flat()
}

const head = 'version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n'
const byDefault = (ingress: string) => `---\napiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: ${ingress}\n`
const rule = (name: string, selected: string, ingress: string) =>
  `---\napiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: ${name}\nportSelector: {ports: [${selected}], protocol: tcp}\ningress: [${ingress}]\n`
const say = async (...texts: string[]) => {
  machine.store.put(MachineConfig, 'v1alpha1', head + texts.join(''))
  await machine.os.settled()
  expect(machine.entries.filter(({ level }) => level === 'warn').map(({ fields }) => fields.error)).toEqual([])
}

story('without a word every port is open', async () => {
  await say()
  expect(await open()).toEqual(ports)
})

story('blocked by default: only what a rule opens, and only to its sources', async () => {
  await say(byDefault('block'))
  expect(await open()).toEqual([])
  await say(
    byDefault('block'),
    rule('api', '50000', '{subnet: 10.9.0.0/24, except: 10.9.0.9/32}'),
    rule('ports', '30000-30100', '{subnet: "fd00:9::/64"}'),
  )
  expect(await open()).toEqual([50000])
  expect(await open('fd00:9::2')).toEqual([30000])
})

story('blocked by default: the machine itself still reaches out, and itself', async () => {
  const server = inNetns(place('outside'), () =>
    Bun.listen({ hostname: '10.9.0.1', port: 0, socket: { open: (socket) => void socket.end('hello'), data() {} } }),
  )
  const ask = (hostname: string, port: number) => {
    const heard = Promise.withResolvers<string>()
    inNetns(place('node'), () => {
      Bun.connect({
        hostname,
        port,
        socket: { data: (_, data) => heard.resolve(data.toString()), error: (_, error) => heard.reject(error) },
      }).catch(heard.reject)
      return undefined
    })
    return heard.promise
  }
  expect(await ask('10.9.0.1', server.port)).toBe('hello')
  expect(await ask('127.0.0.1', 10250)).toBe('x')
  server.stop(true)
})

story('open by default: a rule keeps all but its sources out of its ports', async () => {
  await say(byDefault('accept'), rule('kubelet', '10250', '{subnet: 10.9.0.9/32}'))
  expect(await open()).toEqual([4240, 30000, 50000])
  expect(await open('fd00:9::2')).toEqual([4240, 30000, 50000])
})

story('the table is replaced in one step, others are left alone, and it goes with the last word', async () => {
  await runIn(place('node'), [nft!, 'add', 'table', 'inet', 'kube-proxy'])
  await say(byDefault('block'))
  expect(await runIn(place('node'), [nft!, 'list', 'tables'])).toContain('inet talos')
  await say()
  const tables = await runIn(place('node'), [nft!, 'list', 'tables'])
  expect(tables).not.toContain('talos')
  expect(tables).toContain('kube-proxy')
  expect(await open()).toEqual(ports)
})
