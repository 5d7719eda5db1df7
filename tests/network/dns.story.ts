/** The node's resolver between dnsmasq as upstream and dig as client, each in a namespace of its own. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { dnsmasq } from './lab/dnsmasq.ts'
import { eventually, Namespaces, program, spawnIn } from './lab/namespaces.ts'

const needs = ['dnsmasq', 'dig'].filter((name) => !program(name))
const story = test.skipIf(needs.length > 0)
if (needs.length > 0) console.log(`skipped: needs ${needs.join(', ')} (bun tests/network/prepare.ts)`)

let spaces: Namespaces
const place = (name: string) => `${spaces.folder}/${name}`
const running: { kill(): void }[] = []
const servers = ['10.9.0.1', '10.9.0.9']
const long = Array.from({ length: 10 }, (_, n) => String(n).repeat(200))

/** Answers of dnsmasq: the last number of an address identifies the server. */
function serve(server: string) {
  const last = server.split('.').at(-1)
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => `--host-record=${name}.example,10.1.1.${last},300`)
  const own = ['-k', '-C', '/dev/null', '--no-resolv', '--no-hosts', '--bind-interfaces', `--listen-address=${server}`, '--pid-file=']
  const child = spawnIn(place('outside'), [
    dnsmasq!,
    ...own,
    '--local=/example/',
    '--user=root',
    ...names,
    `--txt-record=long.example,${long.join(',')}`,
  ])
  running.push(child)
  return child
}

async function stopped(child: ReturnType<typeof serve>): Promise<void> {
  child.kill('SIGKILL')
  await child.exited
}

async function dig(from: string, ...args: string[]): Promise<string> {
  const child = spawnIn(place(from), ['dig', '+time=20', '+tries=1', ...args])
  const output = await new Response(child.stdout).text()
  await child.exited
  return output
}
const short = async (from: string, ...args: string[]) => (await dig(from, '+short', ...args)).trim()

let first: ReturnType<typeof serve>
let second: ReturnType<typeof serve>
/** The resolver's reports of the health of its servers, line by line. */
let health: AsyncIterator<string>

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let held = ''
  const decoder = new TextDecoder()
  for await (const chunk of stream) {
    const parts = (held + decoder.decode(chunk, { stream: true })).split('\n')
    held = parts.pop() ?? ''
    yield* parts
  }
}

beforeAll(async () => {
  if (needs.length > 0) return
  spaces = new Namespaces()
  for (const name of ['node', 'outside', 'pod']) spaces.make(name)
  const outside = spaces.network(place('outside'))
  const node = spaces.network(place('node'))
  const pod = spaces.network(place('pod'))
  outside.addVeth({ name: 'to-node', up: true, peer: { name: 'eth0', up: true }, peerNetns: place('node') })
  for (const server of servers) outside.addAddress({ link: outside.indexOf('to-node'), address: `${server}/24` })
  node.addAddress({ link: node.indexOf('eth0'), address: '10.9.0.2/24' })
  node.addAddress({ link: node.indexOf('lo'), address: '169.254.116.108/32' })
  node.addVeth({ name: 'pod0', up: true, peer: { name: 'eth0', up: true }, peerNetns: place('pod') })
  node.addAddress({ link: node.indexOf('pod0'), address: '10.244.0.1/24' })
  pod.addAddress({ link: pod.indexOf('eth0'), address: '10.244.0.2/24' })
  pod.addRoute({ family: 2, gateway: '10.244.0.1', table: 254, priority: 0, scope: 0, type: 1, protocol: 4 })
  first = serve(servers[0]!)
  second = serve(servers[1]!)
  // dnsmasq does not report when it listens: it is queried until it answers.
  for (const server of servers)
    await eventually(async () => (await short('outside', `@${server}`, '+tries=1', '+time=1', 'a.example')).startsWith('10.1.1.'), server)
  const listening = ['127.0.0.53:53', '169.254.116.108:53']
  const child = spawnIn(place('node'), [process.execPath, `${import.meta.dir}/lab/resolver-node.ts`, ...listening, '--', ...servers])
  running.push(child)
  health = lines(child.stdout)
  await health.next()
}, 300_000)
afterAll(() => {
  for (const child of running) child.kill()
  spaces?.close()
})

const onLoopback = '@127.0.0.53'
const forPods = '@169.254.116.108'

story(
  'the node queries on its loopback, its pods at the link-local address, over UDP and TCP',
  async () => {
    expect(await short('node', onLoopback, 'a.example')).toBe('10.1.1.1')
    expect(await short('node', onLoopback, '+tcp', 'a.example')).toBe('10.1.1.1')
    expect(await short('pod', forPods, 'a.example')).toBe('10.1.1.1')
    expect(await short('pod', forPods, '+tcp', 'A.eXample')).toBe('10.1.1.1')
  },
  600_000,
)

story(
  'what does not fit is cut short over UDP and whole over TCP',
  async () => {
    expect(await dig('pod', forPods, '+noedns', '+ignore', 'long.example', 'TXT')).toMatch(/flags:[^;]* tc[ ;]/)
    for (const more of [['+noedns'], ['+bufsize=4096'], ['+tcp']]) {
      const output = await dig('pod', forPods, ...more, 'long.example', 'TXT')
      for (const part of long) expect(output).toContain(part)
    }
  },
  600_000,
)

story(
  'bits of DNSSEC come through, what EDNS 1 is nobody knows, and a name that is not there is not',
  async () => {
    expect(await dig('node', onLoopback, '+dnssec', '+cd', '+adflag', 'b.example')).toMatch(/EDNS: version: 0, flags: do;/)
    expect(await dig('node', onLoopback, '+edns=1', '+noednsnegotiation', 'b.example')).toContain('BADVERS')
    expect(await dig('node', onLoopback, 'gone.example')).toContain('status: NXDOMAIN')
  },
  600_000,
)

story(
  'a dead server is skipped, cached answers are still served, and a server that is back is queried again',
  async () => {
    await stopped(first)
    expect(await short('node', onLoopback, 'c.example')).toBe('10.1.1.9')
    expect(await short('node', onLoopback, 'd.example')).toBe('10.1.1.9')
    expect(await short('node', onLoopback, 'e.example')).toBe('10.1.1.9')
    expect((await health.next()).value).toBe(`well: ${servers[1]}`)
    await stopped(second)
    expect(await short('node', onLoopback, 'a.example')).toBe('10.1.1.1')
    expect(await dig('node', onLoopback, 'f.example')).toContain('status: SERVFAIL')
    first = serve(servers[0]!)
    // Its health is checked every few seconds.
    for (let line = await health.next(); !String(line.value).includes(`${servers[0]}`); ) line = await health.next()
    expect(await short('node', onLoopback, 'g.example')).toBe('10.1.1.1')
  },
  600_000,
)
