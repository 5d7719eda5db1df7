import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Network } from '../../src/linux/net/rtnetlink.ts'
import { expected, nics, recordings, summaryOf, userData } from '../os/network/platform/recordings.ts'
import { dnsmasq, dnsmasqServing } from './lab/dnsmasq.ts'
import { eventually, Namespaces } from './lab/namespaces.ts'

if (!dnsmasq) console.log('skipped: needs dnsmasq: bun tests/network/prepare.ts installs it')

/** Those whose metadata is at a link-local address. */
const overHttp = Object.keys(recordings).filter(
  (name) => !recordings[name]!.optical && Object.keys(recordings[name]!.answers ?? {}).some((url) => url.startsWith('http://169.254.')),
)

let spaces: Namespaces
let node: Network
let children: Bun.Subprocess<'pipe', 'pipe', 'inherit'>[] = []

function start(netns: string, argv: string[]) {
  const child = Bun.spawn(['nsenter', `--net=${netns}`, ...argv], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  children.push(child)
  return child
}

/** The lines of a program as they come; it is an error when it ends before. */
async function* linesOf(child: (typeof children)[number]): AsyncGenerator<string, never> {
  let text = ''
  for await (const chunk of child.stdout) {
    text += Buffer.from(chunk).toString()
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      yield text.slice(0, end)
      text = text.slice(end + 1)
    }
  }
  throw new Error('it ended')
}

beforeEach(() => {
  spaces = new Namespaces()
  const path = spaces.make('node')
  const around = spaces.make('cloud')
  node = spaces.network(path)
  const cloud = spaces.network(around)
  cloud.addBridge({ name: 'br0', up: true })
  for (const { name, hardwareAddress } of nics)
    cloud.addVeth({ name: `port-${name}`, master: cloud.indexOf('br0'), up: true, peer: { name, hardwareAddress }, peerNetns: path })
  for (const address of ['10.8.0.1/24', '169.254.169.254/32', '169.254.42.42/32', '168.63.129.16/32'])
    cloud.addAddress({ link: cloud.indexOf('br0'), address })
})
afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL')
    await child.exited
  }
  children = []
  spaces.close()
})

describe.skipIf(!dnsmasq)('a machine reads of its platform, over the address that DHCP gave it', () => {
  test.each(overHttp)(
    '%s',
    async (name) => {
      const around = join(spaces.folder, 'cloud')
      start(around, dnsmasqServing(spaces.folder, 'br0', 'dhcp-range=10.8.0.50,10.8.0.99,2m', 'dhcp-option=option:router,10.8.0.1'))
      const server = linesOf(start(around, [process.execPath, join(import.meta.dir, 'lab/metadata-server.ts'), name]))
      expect((await server.next()).value).toStartWith('ready')
      const machine = linesOf(
        start(join(spaces.folder, 'node'), [process.execPath, join(import.meta.dir, 'lab/platform-machine.ts'), name]),
      )
      expect(summaryOf(JSON.parse((await machine.next()).value))).toEqual(expected(recordings[name]!))
      expect(JSON.parse((await machine.next()).value)).toBe(userData)
      if (recordings[name]!.reports) expect((await server.next()).value).toContain(recordings[name]!.reports!)
      // Addresses of existing links must be in the kernel.
      const assigned = expected(recordings[name]!).addresses.filter((line) => /^eth\d /.test(line))
      await eventually(
        () => {
          const names = new Map(node.links().map(({ index, name: link }) => [index, link]))
          const present = node.addresses().map(({ link, address }) => `${names.get(link)} ${address}`)
          return assigned.every((line) => present.includes(line))
        },
        `addresses ${assigned.join(', ')}`,
      )
    },
    300_000,
  )
})
