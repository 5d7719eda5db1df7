/**
 * From the page of the image factory to a machine, as a newcomer does it: an ISO with an extension and a kernel argument starts and
 * installs a machine, which is then upgraded to the installer of another schematic, with one more extension, that it pulls from the
 * factory's registry.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { imageKey } from '../../../rootfs/image/key.ts'
import { freePort } from '../../support/free-port.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'
import { asAdministrator, oneNode } from '../one-node.ts'

const minutes = 60_000
const folder = stateFolder('factory')
const path = (name: string) => join(folder, name)
let port = 0
let factory: Bun.Subprocess | undefined
let machine: TestMachine | undefined

const here = () => `http://127.0.0.1:${port}`
/** The host of the emulator, as the machine reaches it. */
const host = () => `10.0.2.2:${port}`
const running = (): TestMachine => {
  if (!machine) throw new Error('the machine is off')
  return machine
}
const admin = (...args: string[]) => asAdministrator(folder, running().port, ...args)

beforeAll(async () => {
  // What an ended run has left belongs to another factory.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const name of ['greeting', 'farewell']) await buildExtension(name)
  port = await freePort()
  const program = [process.execPath, join(import.meta.dir, '../../../src/main.ts'), 'factory', 'serve']
  const kept = ['--cache', path('cache'), '--key', imageKey().path, '--extensions', path('extensions')]
  factory = Bun.spawn([...program, '--images', dist, '--listen', `127.0.0.1:${port}`, '--external-url', `http://${host()}`, ...kept], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  for (const until = performance.now() + minutes; performance.now() < until; await Bun.sleep(200))
    if (
      await fetch(`${here()}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return
  throw new Error('the factory does not answer')
}, 2 * minutes)
afterAll(async () => {
  await machine?.unplug()
  factory?.kill()
  await factory?.exited
  forgetState(folder)
})

/** An extension with a file of its name, in the folder of the factory. */
async function buildExtension(name: string): Promise<void> {
  const files = path(`${name}/rootfs/usr/local/share/${name}`)
  mkdirSync(files, { recursive: true })
  mkdirSync(path('extensions'), { recursive: true })
  writeFileSync(join(files, 'text'), `${name} from an extension\n`)
  const program = [process.execPath, join(import.meta.dir, '../../../src/main.ts'), 'talosctl', 'extension', 'build', path(name)]
  const flags = ['--name', name, '--version', '1.0', '--output', path(`extensions/${name}.tar`)]
  const child = Bun.spawn([...program, ...flags], { stdio: ['ignore', 'inherit', 'inherit'] })
  expect(await child.exited).toBe(0)
}

/** What the page offers for a kernel argument and extensions: the address of the ISO, and the image in its line for an upgrade. */
async function order(argument: string, extensions: readonly string[]): Promise<{ iso: string; image: string }> {
  const [, version = ''] = /<option[^>]*>(v[^<]+)</.exec(await (await fetch(here())).text()) ?? []
  const form = new URLSearchParams({ version, arguments: argument })
  for (const each of extensions) form.append('extension', each)
  const answer = await fetch(`${here()}/page/schematic`, {
    method: 'POST',
    body: form,
    redirect: 'manual',
  })
  const page = await (await fetch(`${here()}${answer.headers.get('location')}`)).text()
  const [, iso = ''] = /href="([^"]+\.iso)"/.exec(page) ?? []
  const [, image = ''] = /<pre id="upgrade">talosctl upgrade --nodes NODE --image (\S+)<\/pre>/.exec(page) ?? []
  expect([iso, image]).toEqual([expect.stringContaining('/image/'), expect.stringContaining(`${host()}/installer/`)])
  return { iso, image }
}

const runs = (slot: 'a' | 'b', parameter: string) =>
  running().until(
    `slot ${slot} runs its kubelet with ${parameter}`,
    async () => {
      const [parameters, services] = [await admin('read', '/proc/cmdline'), await admin('services')]
      for (const { code, stderr } of [parameters, services]) if (code !== 0) throw new Error(stderr.trim())
      return (
        [`ichor.slot=${slot}`, parameter].every((each) => parameters.stdout.includes(each)) && /kubelet\s+Running/.test(services.stdout)
      )
    },
    30 * minutes,
  )

/** The machine has the files of extensions, and lists them with the schematic. */
async function hasExtensions(...names: string[]): Promise<void> {
  for (const name of names) {
    const { stdout } = await admin('read', `/usr/local/share/${name}/text`)
    expect(stdout).toBe(`${name} from an extension\n`)
  }
  const { stdout } = await admin('get', 'extensions', '--output', 'json')
  const listed = [...stdout.matchAll(/"name": ?"([^"]+)",\s*"version"/g)].map(([, name]) => name)
  expect(listed).toEqual([...names, 'schematic'])
}

test(
  'the ISO of the page has the checksum that the factory gives, and starts with the argument',
  async () => {
    const { iso } = await order('ichor.order=first', ['greeting'])
    const bytes = Buffer.from(await (await fetch(`${here()}${iso}`)).arrayBuffer())
    const sum = await (await fetch(`${here()}${iso}.sha256`)).text()
    expect(sum.split(' ')[0]).toBe(new Bun.CryptoHasher('sha256').update(bytes).digest('hex'))
    await Bun.write(path('first.iso'), bytes)
    machine = await TestMachine.start({
      console: path('console.log'),
      cdrom: path('first.iso'),
      disks: [disk(path('disk.img'), 12 * 1024)],
      firmware: uefi(folder),
      memory: 4096,
      outside: true,
      restarts: true,
    })
    console.log(`console: ${path('console.log')}`)
    await machine.shows(/Command line: .*ichor\.order=first/, 10 * minutes)
    await machine.shows(/maintenance: waiting for a machine configuration/, 15 * minutes)
  },
  30 * minutes,
)

test(
  'the machine is installed from it, and keeps the argument',
  async () => {
    const mirrors = { machine: { registries: { mirrors: { [host()]: { endpoints: [`http://${host()}`] } } } } }
    await oneNode(folder, '--install-disk', '/dev/vda', '--config-patch', JSON.stringify(mirrors))
    const apply = () => running().insecurely('apply-config', '--file', path('controlplane.yaml'))
    const taken = async () => /sequence=install/.test(running().console) || (await apply()).code === 0
    await running().until('the configuration is taken', taken, 15 * minutes)
    await runs('a', 'ichor.order=first')
    await hasExtensions('greeting')
  },
  90 * minutes,
)

test(
  'it is upgraded to the installer of another schematic, with one more extension, with the line of the page',
  async () => {
    const { image } = await order('ichor.order=second', ['greeting', 'farewell'])
    const upgraded = await admin('upgrade', '--image', image, '--timeout', '40m')
    expect(upgraded.stderr).toContain('marked good')
    expect(upgraded.code).toBe(0)
    await runs('b', 'ichor.order=second')
    await hasExtensions('greeting', 'farewell')
  },
  90 * minutes,
)
