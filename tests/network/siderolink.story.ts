/** A machine in a namespace joins the field's own agent in another, over datagrams and over gRPC, and serves it alone. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newCA } from '../../src/pki/certificate.ts'
import { succeeded } from '../cluster/cluster.ts'
import { builtTool, run } from '../etcd/etcd-tools.ts'
import { authority, identityOf } from '../programs/apid/nodes.ts'
import { eventually, Namespaces, program, spawnIn } from './lab/namespaces.ts'

const go = program('go')
const ping = program('ping')
const folder = mkdtempSync('/run/ichor-siderolink-')
const spaces = new Namespaces()
const programs: Bun.Subprocess[] = []
const apiPort = 4000
const wireguardPort = 51821
const token = 'v2:a+b/c='
const node = 'fdae:41e4:649b:9303::77'

/** The socket of one agent is in the way of another. */
afterEach(async () => {
  for (const each of programs) each.kill()
  await Promise.all(programs.splice(0).map((each) => each.exited))
})

afterAll(() => {
  spaces.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The status of a machine that joins an agent, both in namespaces of their own that one cable connects. */
class Pair {
  readonly agent: string
  readonly machine: string
  readonly name: string
  lines: string[] = []
  log = ''

  constructor(
    name: string,
    readonly net: number,
  ) {
    this.name = name
    this.agent = spaces.make(`${name}-agent`)
    this.machine = spaces.make(`${name}-machine`)
    const near = spaces.network(this.agent)
    near.addVeth({ name: 'eth0', up: true, peer: { name: 'eth0' }, peerNetns: this.machine })
    const far = spaces.network(this.machine)
    far.setLink('eth0', { up: true })
    near.addAddress({ link: near.link('eth0')?.index ?? 0, address: `10.99.${net}.1/24` })
    far.addAddress({ link: far.link('eth0')?.index ?? 0, address: `10.99.${net}.2/24` })
  }

  startAgent(path: string, uuid: string): void {
    const agent = spawnIn(this.agent, [
      path,
      ...['-sidero-link-wireguard-endpoint', `10.99.${this.net}.1:${wireguardPort}`],
      ...['-sidero-link-api-endpoint', `:${apiPort}`, '-sidero-link-join-token', token, '-sidero-link-force-userspace'],
      ...['-predefined-pairs', `${uuid}=${node}`],
    ])
    this.#follow(agent)
  }

  startMachine(uuid: string, more = '', { server = `grpc://10.99.${this.net}.1:${apiPort}`, roots = '/dev/null' } = {}): void {
    const url = `${server}?jointoken=${encodeURIComponent(token)}${more}`
    const sockets = join(folder, this.name)
    mkdirSync(sockets, { recursive: true })
    const machine = spawnIn(this.machine, [process.execPath, join(import.meta.dir, 'siderolink/node.ts'), url, uuid, sockets, roots])
    this.#follow(machine, (line) => this.lines.push(line))
  }

  /** Serves the API of the agent over TLS on port 443 too; returns a file with the authority of its certificate. */
  async serveTls(): Promise<string> {
    const { server } = identityOf(`10.99.${this.net}.1`, 'maintenance')
    const settings = JSON.stringify({ cert: server.certificate, key: server.key, ALPNProtocols: ['h2'] })
    const proxy = `require('node:tls').createServer(${settings}, (outer) => {
  const inner = require('node:net').connect(${apiPort}, '127.0.0.1')
  for (const each of [outer, inner]) each.on('error', () => {})
  outer.pipe(inner).pipe(outer)
}).listen(443, () => console.log('serves TLS'))`
    this.#follow(spawnIn(this.agent, [process.execPath, '-e', proxy]))
    await eventually(() => this.log.includes('serves TLS'), 'the API over TLS', 10_000)
    const roots = join(folder, `${this.name}.pem`)
    writeFileSync(roots, authority.crt)
    return roots
  }

  get status(): Record<string, unknown> {
    return JSON.parse(this.lines.at(-1) ?? '{}')
  }

  /** Which roles a caller from this address has, or that nobody answers. */
  async rolesAt(from: string, address: string): Promise<string> {
    const call = `import { connect } from '${join(import.meta.dir, '../../src/rpc/client/channel.ts')}'
const channel = connect({ address: '${address}:50000', tls: { insecure: true } }, { connectTimeout: 2000 })
const { messages: [{ hostname }] } = await channel.unary('machine.MachineService/Hostname', {}, { deadline: 5000 })
console.log(hostname); process.exit(0)`
    const { code, stdout } = await run(['nsenter', `--net=${from}`, process.execPath, '-e', call])
    return code === 0 ? stdout.trim() : 'no answer'
  }

  async reaches(): Promise<boolean> {
    return (await run(['nsenter', `--net=${this.agent}`, ping ?? '', '-6', '-c', '1', '-W', '2', node])).code === 0
  }

  #follow(child: ReturnType<typeof spawnIn>, take?: (line: string) => void): void {
    programs.push(child)
    const read = async (stream: ReadableStream<Uint8Array>, each?: (line: string) => void) => {
      let rest = ''
      for await (const bytes of stream) {
        const lines = (rest + Buffer.from(bytes).toString()).split('\n')
        rest = lines.pop() ?? ''
        this.log += `${lines.join('\n')}\n`
        for (const line of lines) each?.(line)
      }
    }
    Promise.all([read(child.stdout, take), read(child.stderr)]).catch(() => {})
  }
}

const missing = [!go && 'Go', !ping && 'ping'].filter(Boolean)
if (missing.length > 0) console.log(`skipped: needs ${missing.join(', ')}`)

describe.skipIf(missing.length > 0)('with the agent of the field', () => {
  let agent = ''
  beforeAll(async () => {
    agent = await builtTool(folder, 'agent', 'tests/interop/siderolink', 'github.com/siderolabs/siderolink/cmd/siderolink-agent')
  }, 300_000)

  const joins = async (pair: Pair, uuid: string, more: string, link: string, over?: Parameters<Pair['startMachine']>[2]) => {
    pair.startAgent(agent, uuid)
    pair.startMachine(uuid, more, over)
    await eventually(
      () => pair.status.connected === true && pair.status.listenAddress !== undefined,
      `${pair.name}: ${pair.log.slice(-2000)}`,
      60_000,
    ).catch((error) => {
      throw new Error(`${(error as Error).message}\n${pair.log.slice(-4000)}`)
    })
    expect(pair.status).toEqual({
      host: `10.99.${pair.net}.1`,
      connected: true,
      linkName: link,
      grpcTunnel: more !== '',
      listenAddress: `[${node}]:50000`,
    })
    await eventually(() => pair.reaches(), 'ping through the link', 30_000)
  }

  test('a machine joins over datagrams, and its server alone is its administrator', async () => {
    const pair = new Pair('datagrams', 1)
    await joins(pair, 'aaaaaaaa-0000-4000-8000-000000000001', '', 'siderolink')
    expect(await pair.rolesAt(pair.agent, `[${node}]`)).toBe('os:admin')
    expect(await pair.rolesAt(pair.agent, `10.99.1.2`)).toBe('no answer')
  }, 120_000)

  test('a machine joins over gRPC, and no datagram leaves it', async () => {
    const pair = new Pair('tunnel', 2)
    // Nothing but the API is let through.
    const rules = 'table inet t { chain o { type filter hook output priority 0; meta l4proto udp oifname "eth0" drop; }; }'
    const nft = program('nft')
    if (nft) succeeded(await run(['nsenter', `--net=${pair.machine}`, nft, rules]))
    await joins(pair, 'aaaaaaaa-0000-4000-8000-000000000002', '&grpc_tunnel=true', 'siderolinktun')
    expect(await pair.rolesAt(pair.agent, `[${node}]`)).toBe('os:admin')
  }, 120_000)

  test('a machine joins over TLS, and only a server whose authority it trusts', async () => {
    const pair = new Pair('tls', 3)
    const uuid = 'aaaaaaaa-0000-4000-8000-000000000003'
    const server = 'https://10.99.3.1'
    const roots = await pair.serveTls()
    const others = join(folder, 'others.pem')
    writeFileSync(others, newCA({ subject: { organizations: ['other'] } }).crt)
    pair.startMachine(uuid, '', { server, roots: others })
    await eventually(() => /10\.99\.3\.1:443.*certificate/.test(pair.log), 'the unknown authority is reported', 30_000)
    expect(pair.status.connected).not.toBe(true)
    const stranger = programs.pop()
    stranger?.kill()
    await stranger?.exited
    await joins(pair, uuid, '&grpc_tunnel=y', 'siderolinktun', { server, roots })
  }, 120_000)
})
