/**
 * Kernel modules of a system extension: the image factory makes a release again with modules of Debian's kernel that its images leave
 * out, and a machine with the device that they drive loads them by its alias, each after those that it needs.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { takeStarters } from '../../../rootfs/image/kernel.ts'
import { imageKey } from '../../../rootfs/image/key.ts'
import { qemuArguments } from '../../../src/programs/node-supervisor/machine/qemu-arguments.ts'
import { finished } from '../../support/command-result.ts'
import { freePort } from '../../support/free-port.ts'
import { dist, forgetState, stateFolder, TestMachine, virtualMachine } from '../machine.ts'

const minutes = 60_000
const repository = join(import.meta.dir, '../../..')
const program = [process.execPath, join(repository, 'src/main.ts')]
const folder = stateFolder('kernel-modules')
const path = (name: string) => join(folder, name)
/** A driver of CAN adapters, and what it needs. */
const modules = ['can/dev/can-dev', 'can/sja1000/sja1000', 'can/sja1000/kvaser_pci'].map((name) => `kernel/drivers/net/${name}.ko`)
/** Of the emulator: an adapter that this driver is for. */
const adapter = ['-object', 'can-bus,id=can', '-device', 'kvaser_pci,canbus=can']
let kernel = ''
let factory: Bun.Subprocess | undefined
let machine: TestMachine | undefined

const running = (): TestMachine => {
  if (!machine) throw new Error('the machine is off')
  return machine
}

/** Serves the release with an extension that has the modules. */
async function serve(): Promise<string> {
  const starters = await takeStarters()
  kernel = starters.kernel.release
  const below = `lib/modules/${kernel}`
  for (const module of modules) {
    const to = path(`can/rootfs/usr/${below}/${module}`)
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(dirname(dirname(starters.kernel.image)), below, module), to)
  }
  mkdirSync(path('extensions'))
  const flags = ['--name', 'can', '--version', '1.0', '--output', path('extensions/can.tar')]
  const built = await finished(
    Bun.spawn([...program, 'talosctl', 'extension', 'build', path('can'), ...flags], { stdout: 'pipe', stderr: 'pipe' }),
  )
  expect([built.code, built.stderr]).toEqual([0, ''])
  const port = await freePort()
  const kept = ['--cache', path('cache'), '--key', imageKey().path, '--extensions', path('extensions')]
  factory = Bun.spawn([...program, 'factory', 'serve', '--images', dist, '--listen', `127.0.0.1:${port}`, ...kept], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  for (const until = performance.now() + minutes; performance.now() < until; await Bun.sleep(200))
    if (
      await fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return url
  throw new Error('the factory does not answer')
}

/** Kernel, initramfs and command line of a schematic with the extension. */
async function download(url: string): Promise<void> {
  const body = JSON.stringify({ customization: { systemExtensions: { officialExtensions: ['can'] } } })
  const { id } = (await (await fetch(`${url}/schematics`, { method: 'POST', body })).json()) as { id: string }
  const [version] = (await (await fetch(`${url}/versions`)).json()) as string[]
  mkdirSync(path('image'))
  for (const [name, to] of Object.entries({
    'kernel-amd64': 'ichor-vmlinuz',
    'initramfs-amd64.xz': 'ichor-initramfs',
    'cmdline-metal-amd64': 'ichor-cmdline',
  })) {
    const answer = await fetch(`${url}/image/${id}/${version}/${name}`)
    if (!answer.ok) throw new Error(`${name}: ${await answer.text()}`)
    await Bun.write(join(path('image'), to), answer)
  }
}

beforeAll(async () => {
  // What an ended run has left belongs to another factory.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  await download(await serve())
}, 10 * minutes)
afterAll(async () => {
  await machine?.unplug()
  factory?.kill()
  await factory?.exited
  forgetState(folder)
})

test(
  'a machine with the device loads the modules of the extension',
  async () => {
    const options = { console: path('console.log'), image: path('image') }
    const emulator = (port: number) => ['qemu-system-x86_64', ...qemuArguments(virtualMachine(options, port)), ...adapter]
    console.log(`console: ${options.console}`)
    machine = await TestMachine.start({ ...options, emulator })
    await machine.shows(/maintenance: waiting for a machine configuration/, 15 * minutes)
    const loaded = await machine.outputs(() => running().insecurely('get', 'modules'), /\bkvaser_pci\b/, 5 * minutes)
    for (const name of ['can_dev', 'sja1000', 'kvaser_pci']) expect(loaded).toMatch(new RegExp(`\\b${name}\\b.*\\bLive\\b`, 'i'))
  },
  20 * minutes,
)

test(
  'it lists the extension, and the tables of modules that were made again',
  async () => {
    const { stdout } = await running().insecurely('get', 'extensions', '--output', 'json')
    const listed = [...stdout.matchAll(/"name": ?"([^"]+)",\s*"version": ?"([^"]+)"/g)].map(([, name, version]) => [name, version])
    expect(listed).toEqual([
      ['can', '1.0'],
      ['schematic', expect.any(String)],
      ['modules.dep', kernel],
    ])
  },
  5 * minutes,
)
