/**
 * A machine whose volumes a KMS on its network opens: it is installed and starts from its disk, while the server is away its STATE
 * stays locked and the reason is shown, it opens by itself once the server answers, and one that is struck off the list stays locked.
 * With ICHOR_VM_STATE what was installed is kept for the next run.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, talosctl, uefi } from '../machine.ts'
import { asAdministrator, oneNode } from '../one-node.ts'

const folder = stateFolder('kms')
const path = (name: string) => join(folder, name)
const minutes = 60_000
const uuid = '7b0d3c52-9a41-4f0e-8c6d-2e5f1a9b8c70'
let machine: TestMachine | undefined
let server: Bun.Subprocess | undefined

const done = (step: string) => existsSync(path(step))

/** The port of the server, which stands in the configuration. */
async function kmsPort(): Promise<number> {
  if (!done('port')) writeFileSync(path('port'), String(await freePort()))
  return Number(readFileSync(path('port'), 'utf8'))
}

async function startServer(): Promise<void> {
  const listen = ['--listen', `127.0.0.1:${await kmsPort()}`, '--plaintext']
  const files = ['--key-file', path('kms.key'), '--machines', path('machines')]
  server = Bun.spawn([join(dist, 'talosctl'), 'kms', 'serve', ...files, ...listen], {
    stdio: ['ignore', 'ignore', Bun.file(path('kms.log'))],
  })
}

async function stopServer(): Promise<void> {
  server?.kill()
  await server?.exited
  server = undefined
}

async function powerOn(): Promise<TestMachine> {
  await machine?.unplug()
  machine = await TestMachine.start({
    console: path('console.log'),
    cdrom: done('installed') ? undefined : join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'),
    disks: [disk(path('system.img'), 8 * 1024, 'virtio', 'system')],
    firmware: uefi(folder),
    memory: 2304,
    restarts: true,
    smbios: [`type=1,uuid=${uuid}`],
    // The server is on the host, which is 10.0.2.2 there.
    outside: true,
  })
  return machine
}

beforeAll(async () => {
  console.log(`console: ${path('console.log')}`)
  if (!done('kms.key')) expect((await talosctl(['kms', 'new-key', path('kms.key')])).code).toBe(0)
  writeFileSync(path('machines'), `${uuid}\n`)
  await startServer()
}, minutes)
afterAll(async () => {
  await machine?.unplug()
  await stopServer()
  forgetState(folder)
})

/** Waits until both volumes are open by the key of the server. */
async function isOpen(here: TestMachine): Promise<void> {
  for (const id of ['STATE', 'EPHEMERAL']) {
    const status = await here.outputs(
      () => asAdministrator(folder, here.port, 'get', 'volumestatus', id, '-o', 'yaml'),
      /phase: ready[\s\S]*configuredEncryptionKeys:\s+- kms/,
      45 * minutes,
    )
    expect(status).toContain('encryptionSlot: 0')
    expect(status).not.toContain('encryptionFailedSyncs')
  }
}

/** Without a recovery key nothing but the console can report a locked STATE, which has the configuration and the certificates. */
const locked = (here: TestMachine) => here.shows(/volume failed .*volume=STATE .*slot 0 \(kms\): the KMS .*10\.0\.2\.2/, 45 * minutes)

test.skipIf(done('installed'))(
  'it installs with volumes that the server opens',
  async () => {
    const here = await powerOn()
    await here.shows(/maintenance: waiting for a machine configuration/, 30 * minutes)
    await here.shows(/service=apid .*"Health check successful"/, 30 * minutes)
    await oneNode(folder, '--install-disk', '/dev/vda')
    const volume = (name: string, port: number) =>
      `---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ${name}\nencryption:\n  provider: luks2\n  keys: [{ slot: 0, kms: { endpoint: "grpc://10.0.2.2:${port}" } }]\n`
    const port = await kmsPort()
    const text = await Bun.file(path('controlplane.yaml')).text()
    writeFileSync(path('whole.yaml'), `${text}${volume('STATE', port)}${volume('EPHEMERAL', port)}`)
    await here.takes(path('whole.yaml'), 10 * minutes)
    await here.shows(/sequence=install phase=stopEverything /, 45 * minutes)
    here.forget()
    writeFileSync(path('installed'), '')
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
    await isOpen(here)
  },
  180 * minutes,
)

test(
  'while the server is away STATE stays locked, and opens by itself once it answers',
  async () => {
    await stopServer()
    const here = await powerOn()
    await locked(here)
    await startServer()
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
    await isOpen(here)
  },
  120 * minutes,
)

test(
  'a machine that was struck off the list of the server stays locked, and the server logs it',
  async () => {
    writeFileSync(path('machines'), '# none\n')
    const here = await powerOn()
    await locked(here)
    expect(here.console).not.toMatch(/machine configuration found.*source=state/)
    expect(readFileSync(path('kms.log'), 'utf8')).toMatch(new RegExp(`request refused .*node=${uuid}`))
  },
  120 * minutes,
)
