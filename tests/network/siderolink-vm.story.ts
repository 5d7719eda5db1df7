/** A machine without a configuration, whose kernel has WireGuard and whose command line names the field's own agent. */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtTool, run } from '../etcd/etcd-tools.ts'
import { dist, forgetState, stateFolder, TestMachine } from '../vm/machine.ts'
import { Namespaces, program, spawnIn } from './lab/namespaces.ts'

const needs = ['qemu-system-x86_64', 'go', 'ping', 'nsenter'].filter((name) => !program(name))
const image = process.env.ICHOR_VM_IMAGE ?? dist
if (!existsSync(join(image, 'ichor-vmlinuz'))) needs.push('an image: bun rootfs/image.ts')
if (needs.length > 0) console.log(`skipped: needs ${needs.join(', ')}`)

const folder = stateFolder('siderolink')
const spaces = new Namespaces()
const uuid = 'aaaaaaaa-0000-4000-8000-000000000009'
const node = 'fdae:41e4:649b:9303::99'
/** The agent's address in its network, where it takes events (8080) and logs (4001). */
const server = 'fdae:41e4:649b:9303::1'
const minutes = 60_000
let machine: TestMachine | undefined
let agent: ReturnType<typeof spawnIn> | undefined

afterAll(async () => {
  await machine?.unplug()
  agent?.kill()
  await agent?.exited
  spaces.close()
  forgetState(folder)
})

test.skipIf(needs.length > 0)(
  'it is reached through the link alone, sends its events and kernel log through it, keeps the token that its server gives it, and joins again with it',
  async () => {
    const host = spaces.make('host')
    const path = await builtTool(folder, 'agent', 'tests/interop/siderolink', 'github.com/siderolabs/siderolink/cmd/siderolink-agent')
    const startAgent = () =>
      spawnIn(host, [
        ...['sh', '-c', 'exec "$@" >> "$0" 2>&1', join(folder, 'agent.log'), path],
        ...['-sidero-link-wireguard-endpoint', '10.0.2.2:51821', '-sidero-link-api-endpoint', ':4000', '-sidero-link-join-token', 'token'],
        ...['-sidero-link-force-userspace', '-predefined-pairs', `${uuid}=${node}`],
      ])
    agent = startAgent()
    machine = await TestMachine.start({
      image,
      console: join(folder, 'console.log'),
      append: [
        'siderolink.api=grpc://10.0.2.2:4000?jointoken=token',
        `talos.events.sink=[${server}]:8080 talos.logging.kernel=tcp://[${server}]:4001`,
      ].join(' '),
      outside: true,
      netns: host,
      smbios: [`type=1,uuid=${uuid}`],
    })
    console.log(`console: ${join(folder, 'console.log')}`)
    const inHost = (...argv: string[]) => run(['nsenter', `--net=${host}`, ...argv])
    const talosctl = (address: string, ...args: string[]) => inHost(join(dist, 'talosctl'), '--nodes', address, ...args, '--insecure')
    const through = (what: RegExp, ...args: string[]) => machine?.outputs(() => talosctl(node, ...args), what, 10 * minutes)

    await through(/connected: true/, 'get', 'siderolinkstatus', '-o', 'yaml')
    expect((await inHost('ping', '-6', '-c', '1', '-W', '5', node)).code).toBe(0)
    // The other network of the machine has no API.
    expect((await talosctl(`127.0.0.1:${machine.port}`, 'version')).code).not.toBe(0)

    const agentLog = () => readFileSync(join(folder, 'agent.log'), 'utf8')
    for (const source of ['events', 'kernel'])
      await through(new RegExp(`source: ${source}\\n.*\\n +connected: true\\n +sent: [1-9]`), 'get', 'deliveries', '-o', 'yaml')

    const token = JSON.stringify({ Fingerprint: 'ab'.repeat(32), Token: 'bbbbbbbb-0000-4000-8000-000000000001' })
    expect(await talosctl(node, 'meta', 'write', '0x10', token)).toMatchObject({ code: 0 })
    await through(/bbbbbbbb-0000-4000-8000-000000000001/, 'get', 'uniquemachinetoken', '-o', 'yaml')

    const provisions = () => agentLog().match(/got new node.*/g) ?? []
    await machine.until(
      'it joins with the token',
      async () => /bbbbbbbb-0000-4000-8000-000000000001/.test(provisions().at(-1) ?? ''),
      minutes,
    )

    // A server that starts again has forgotten the machine and has other keys.
    agent.kill()
    await agent.exited
    agent = startAgent()
    await through(/connected: true/, 'get', 'siderolinkstatus', '-o', 'yaml')
  },
  30 * minutes,
)
