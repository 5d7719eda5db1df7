/**
 * A system extension on a machine: QEMU's guest agent from Debian packages becomes part of a disk image, runs as a service once the
 * machine has its configuration, and answers the host.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { finished } from '../../support/command-result.ts'
import { forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'
import { asAdministrator, oneNode } from '../one-node.ts'

const repository = join(import.meta.dir, '../../..')
const folder = stateFolder('guest-agent')
const path = (name: string) => join(folder, name)
const minutes = 60_000
/** The agent and the libraries that it is linked with. */
const packages =
  'qemu-guest-agent libc6 libgcc-s1 libglib2.0-0 libpcre2-8-0 libselinux1 libffi8 libmount1 libblkid1 zlib1g liburing2 libudev1 libnuma1'
const specification = `name: qemu-guest-agent
container:
  entrypoint: /usr/sbin/qemu-ga
  args: [--method=virtio-serial, --path=/dev/virtio-ports/org.qemu.guest_agent.0]
  mounts:
    - {source: /dev, destination: /dev, type: bind, options: [rbind, rshared, rw]}
    - {source: tmpfs, destination: /var/run, type: tmpfs, options: [nosuid, nodev, mode=755]}
depends:
  - path: /dev/virtio-ports/org.qemu.guest_agent.0
restart: always
`
let machine: TestMachine

async function run(cwd: string, ...argv: string[]): Promise<void> {
  const { code, stdout, stderr } = await finished(Bun.spawn(argv, { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' }))
  if (code !== 0) throw new Error(`${argv.join(' ')}: ${stderr}${stdout}`)
}

beforeAll(async () => {
  console.log(`console: ${path('console.log')}`)
  mkdirSync(path('packages'), { recursive: true })
  await run(path('packages'), 'apt-get', 'download', ...packages.split(' '))
  await Bun.write(path('agent.yaml'), specification)
  const files = readdirSync(path('packages')).flatMap((name) => ['--package', path(`packages/${name}`)])
  const program = [process.execPath, join(repository, 'src/main.ts'), 'talosctl', 'extension', 'build']
  const of = ['--name', 'qemu-guest-agent', '--version', '7.2', '--service', path('agent.yaml'), '--output', path('agent.tar')]
  await run(folder, ...program, ...of, ...files)
  const extended = ['--fast', '--only', 'disk', '--output', path('image'), '--system-extension-image', path('agent.tar')]
  await run(folder, join(repository, 'mkimage.sh'), ...extended)
  machine = await TestMachine.start({
    console: path('console.log'),
    disks: [{ file: path('image/ichor-amd64.qcow2'), format: 'qcow2', bus: 'virtio' }],
    firmware: uefi(folder),
    memory: 3072,
    agent: path('agent.sock'),
  })
}, 30 * minutes)
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

/** Calls the agent (QEMU guest agent protocol: a JSON object a line); undefined while nobody answers. */
function call(execute: string): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const socket = connect(path('agent.sock'))
  let text = ''
  socket.on('error', reject)
  socket.setTimeout(20_000, () => {
    socket.destroy()
    resolve(undefined)
  })
  socket.on('data', (bytes) => {
    text += bytes.toString()
    if (!text.includes('\n')) return
    socket.destroy()
    resolve(JSON.parse(text.slice(0, text.indexOf('\n'))).return)
  })
  socket.write(`${JSON.stringify({ execute })}\n`)
  return promise
}

test(
  'the machine starts and lists the extension',
  async () => {
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 10 * minutes)
    const listed = await machine.outputs(() => machine.insecurely('get', 'extensions'), /qemu-guest-agent/, 10 * minutes)
    expect(listed).toMatch(/ExtensionStatus\s+0\s+1\s+qemu-guest-agent\s+7\.2/)
  },
  21 * minutes,
)

test(
  'with its configuration the agent runs, and answers the host',
  async () => {
    await oneNode(folder, '--install-disk', '/dev/vda')
    await machine.takes(path('controlplane.yaml'), 10 * minutes)
    const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)
    await machine.outputs(() => admin('services'), /ext-qemu-guest-agent\s+Running/, 20 * minutes)
    const addresses = await machine.until('the agent answers', () => call('guest-network-get-interfaces'), 10 * minutes)
    expect(JSON.stringify(addresses)).toContain('"ip-address":"10.0.2.15"')
  },
  41 * minutes,
)
