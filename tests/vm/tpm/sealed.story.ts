/**
 * A machine whose volumes only its TPM opens, in an image with a signed policy: it is installed and starts from its disk, an upgrade
 * that is signed with the same key opens them, one with another key is refused, and with another TPM the recovery key opens them and
 * the new TPM takes over. With ICHOR_VM_STATE what was installed is kept for the next run.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../../rootfs/build/run.ts'
import { newIdentity, parseIdentity, recipientOf } from '../../../src/wire/age/keys.ts'
import { newPcrKey } from '../../support/measured-image.ts'
import { machineTpm } from '../../support/swtpm.ts'
import { disk, forgetState, stateFolder, TestMachine, talosctl, uefi } from '../machine.ts'
import { asAdministrator, oneNode } from '../one-node.ts'

const folder = stateFolder('sealed')
const path = (name: string) => join(folder, name)
const minutes = 60_000
let tpm: Awaited<ReturnType<typeof machineTpm>> | undefined
let machine: TestMachine | undefined

const done = (step: string) => existsSync(path(step))
const remember = (step: string) => writeFileSync(path(step), '')

/** Makes an image whose policy a key signs, with one more kernel parameter. */
async function image(name: string, key: string, products: string): Promise<void> {
  if (done(name)) return
  const make = [process.execPath, join(import.meta.dir, '../../../rootfs/image.ts'), '--fast', '--only', products]
  await run([...make, '--output', path(name), '--pcr-key', path(key), '--extra-kernel-arg', `ichor.story=${name}`])
}

async function powerOff(): Promise<void> {
  await machine?.unplug()
  await tpm?.stop()
}

async function powerOn(): Promise<TestMachine> {
  await powerOff()
  tpm = await machineTpm(folder)
  machine = await TestMachine.start({
    console: path('console.log'),
    cdrom: done('installed') ? undefined : join(path('first'), 'ichor-amd64.iso'),
    disks: [disk(path('system.img'), 8 * 1024, 'virtio', 'system')],
    firmware: uefi(folder),
    memory: 2304,
    restarts: true,
    tpm: tpm.socket,
  })
  return machine
}

beforeAll(async () => {
  for (const key of ['ours.pem', 'theirs.pem'])
    if (!done(key)) writeFileSync(path(key), newPcrKey().export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  await image('first', 'ours.pem', 'iso')
  await image('second', 'ours.pem', 'installer')
  await image('foreign', 'theirs.pem', 'installer')
  console.log(`console: ${path('console.log')}`)
}, 90 * minutes)
afterAll(async () => {
  await powerOff()
  forgetState(folder)
})

/** The documents of the story, after those of a generated configuration. */
async function configuration(recipient: string): Promise<string> {
  const volume = (name: string, more: string) =>
    `---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ${name}\nencryption: { provider: luks2, keys: [{ slot: 0, tpm: {}${more} }] }\n`
  const recovery = `---\napiVersion: v1alpha1\nkind: DiskRecoveryConfig\nrecipients: [${recipient}]\n`
  const text = await Bun.file(path('controlplane.yaml')).text()
  writeFileSync(path('whole.yaml'), `${text}${volume('STATE', '')}${volume('EPHEMERAL', ', lockToState: true')}${recovery}`)
  return path('whole.yaml')
}

/** Waits until both volumes are open by the key of the TPM, and every key is in place. */
async function sealedVolumes(here: TestMachine): Promise<void> {
  for (const id of ['STATE', 'EPHEMERAL']) {
    const status = await here.outputs(
      () => asAdministrator(folder, here.port, 'get', 'volumestatus', id, '-o', 'yaml'),
      /phase: ready[\s\S]*configuredEncryptionKeys:\s+- tpm/,
      30 * minutes,
    )
    expect(status).toContain('encryptionSlot: 0')
    expect(status).not.toContain('encryptionFailedSyncs')
  }
}

const admin = (here: TestMachine, ...args: string[]) => asAdministrator(folder, here.port, ...args)
/** Upgrades to one of the releases; the archive goes through the API of an emulated machine. */
const upgrade = (here: TestMachine, release: string) => {
  const flags = ['--image', join(path(release), 'ichor-installer-amd64.tar'), '--timeout', '40m']
  const node = ['--talosconfig', path('talosconfig'), '--endpoints', `127.0.0.1:${here.port}`, '--nodes', '127.0.0.1']
  return talosctl([...node, 'upgrade', ...flags], {}, 45 * minutes)
}

const commandLine = (here: TestMachine) => here.outputs(() => admin(here, 'read', '/proc/cmdline'), /ichor\.story=/, 10 * minutes)

test.skipIf(done('installed'))(
  'it installs with volumes that its TPM opens',
  async () => {
    const here = await powerOn()
    await here.shows(/maintenance: waiting for a machine configuration/, 30 * minutes)
    await here.shows(/service=apid .*"Health check successful"/, 30 * minutes)
    const identity = newIdentity()
    writeFileSync(path('identity'), `${identity}\n`, { mode: 0o600 })
    await oneNode(folder, '--install-disk', '/dev/vda')
    await here.takes(await configuration(recipientOf(parseIdentity(identity))), 10 * minutes)
    await here.shows(/sequence=install phase=stopEverything /, 45 * minutes)
    here.forget()
    remember('installed')
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
    await sealedVolumes(here)
  },
  180 * minutes,
)

test.skipIf(done('upgraded'))(
  'a release with another policy key is refused; one with the same key and another command line opens the volumes',
  async () => {
    const here = machine ?? (await powerOn())
    await sealedVolumes(here)
    const refused = await upgrade(here, 'foreign')
    expect(refused.stderr).toContain('it is not signed with the PCR key of the running image')
    expect(refused.code).toBe(1)
    const upgraded = await upgrade(here, 'second')
    expect(upgraded.stderr).toContain('marked good')
    remember('upgraded')
    expect(await commandLine(here)).toContain('ichor.story=second')
    await sealedVolumes(here)
    const measured = await here.outputs(() => admin(here, 'measurements', '-o', 'json'), /"pcr": 11/, 10 * minutes)
    expect(measured).toContain('"explained": true')
    expect(measured).not.toContain('"explained": false')
  },
  120 * minutes,
)

test.skipIf(done('replaced'))(
  'with another TPM the volumes are locked, and open with the recovery key; then the new TPM has the keys',
  async () => {
    await powerOff()
    // The next TPM has other seeds: nothing that this one has sealed opens with it.
    rmSync(path('tpm'), { recursive: true })
    const here = await powerOn()
    const insecure = (...args: string[]) => here.insecurely(...args)
    const key = await here.outputs(
      () => insecure('volumes', 'recovery-key', '--identity', path('identity'), '--no-qr'),
      /^([0-9A-Z]{4}-){8}[0-9A-Z]{4}\n$/,
      45 * minutes,
    )
    writeFileSync(path('key'), key, { mode: 0o600 })
    await here.outputs(() => insecure('volumes', 'unlock', '--recovery-key-file', path('key')), /unlocked STATE/, 10 * minutes)
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
    const status = (id: string) => admin(here, 'get', 'volumestatus', id, '-o', 'yaml')
    for (const id of ['STATE', 'EPHEMERAL']) await here.outputs(() => status(id), /phase: ready/, 30 * minutes)
    remember('replaced')
  },
  150 * minutes,
)

test(
  'the next start needs no help',
  async () => {
    const here = machine ?? (await powerOn())
    here.forget()
    expect((await admin(here, 'reboot', '--mode', 'powercycle', '--wait=false')).code).toBe(0)
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
    await sealedVolumes(here)
  },
  90 * minutes,
)
