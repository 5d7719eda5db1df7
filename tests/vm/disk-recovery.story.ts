/**
 * A machine whose configuration names who can recover its disk moves to another board: no key of its volumes works there, an
 * administrator reads the recovery key that the machine made, and the volumes open. With ICHOR_VM_STATE what was installed is kept
 * for the next run.
 */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newIdentity, parseIdentity, recipientOf } from '../../src/wire/age/keys.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, talosctl, uefi } from './machine.ts'
import { asAdministrator, oneNode } from './one-node.ts'

const folder = stateFolder('disk-recovery')
const path = (name: string) => join(folder, name)
const minutes = 60_000
const [board, otherBoard] = ['5f1c9a3e-6b2d-4c7a-9e01-3d8a4b6c7d2f', '9d2f6a1c-0b7e-4c35-8d1e-5a3b7c9d1e2f']
let machine: TestMachine | undefined

const done = (step: string) => existsSync(path(step))

async function powerOn(uuid: string): Promise<TestMachine> {
  await machine?.unplug()
  machine = await TestMachine.start({
    console: path('console.log'),
    cdrom: done('installed') ? undefined : join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'),
    disks: [disk(path('system.img'), 8 * 1024, 'virtio', 'system')],
    firmware: uefi(folder),
    memory: 2304,
    restarts: true,
    smbios: [`type=1,uuid=${uuid}`],
  })
  return machine
}

console.log(`console: ${path('console.log')}`)
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

/** The documents of the story, after those of a generated configuration. */
async function configuration(recipient: string): Promise<string> {
  const volume = (name: string) =>
    `---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ${name}\nencryption: { provider: luks2, keys: [{ slot: 0, nodeID: {} }] }\n`
  const recovery = `---\napiVersion: v1alpha1\nkind: DiskRecoveryConfig\nrecipients: [${recipient}]\n`
  writeFileSync(
    path('whole.yaml'),
    `${await Bun.file(path('controlplane.yaml')).text()}${volume('STATE')}${volume('EPHEMERAL')}${recovery}`,
  )
  return path('whole.yaml')
}

test.skipIf(done('installed'))(
  'it installs with encrypted volumes and a recipient',
  async () => {
    const here = await powerOn(board)
    await here.shows(/maintenance: waiting for a machine configuration/, 30 * minutes)
    await here.shows(/service=apid .*"Health check successful"/, 30 * minutes)
    const identity = newIdentity()
    writeFileSync(path('identity'), `${identity}\n`, { mode: 0o600 })
    await oneNode(folder, '--install-disk', '/dev/vda')
    await here.takes(await configuration(recipientOf(parseIdentity(identity))), 10 * minutes)
    await here.shows(/sequence=install phase=stopEverything /, 45 * minutes)
    here.forget()
    writeFileSync(path('installed'), '')
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
  },
  150 * minutes,
)

test(
  'both volumes hold one key for the recipient',
  async () => {
    const here = machine ?? (await powerOn(board))
    const shown = await here.outputs(
      () => asAdministrator(folder, here.port, 'volumes', 'recovery-key', '--identity', path('identity'), '--no-qr'),
      /^([0-9A-Z]{4}-){8}[0-9A-Z]{4}\n$/,
      45 * minutes,
    )
    writeFileSync(path('key'), shown, { mode: 0o600 })
    await here.outputs(() => asAdministrator(folder, here.port, 'get', 'volumerecovery'), /EPHEMERAL[\s\S]*STATE/, 20 * minutes)
  },
  90 * minutes,
)

test(
  'on another board the volumes are locked, and open with the key that the recipient reads there',
  async () => {
    const here = await powerOn(otherBoard)
    const insecure = (...args: string[]) => talosctl([...args, '--nodes', `127.0.0.1:${here.port}`, '--insecure'])
    const key = await here.outputs(
      () => insecure('volumes', 'recovery-key', '--identity', path('identity'), '--no-qr'),
      /^([0-9A-Z]{4}-){8}[0-9A-Z]{4}\n$/,
      45 * minutes,
    )
    expect(key).toBe(await Bun.file(path('key')).text())
    writeFileSync(path('key'), key, { mode: 0o600 })
    await here.outputs(() => insecure('volumes', 'unlock', '--recovery-key-file', path('key')), /unlocked STATE/, 10 * minutes)
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
    await here.outputs(
      () => asAdministrator(folder, here.port, 'get', 'volumestatus', 'EPHEMERAL', '-o', 'yaml'),
      /phase: ready/,
      30 * minutes,
    )
  },
  150 * minutes,
)
