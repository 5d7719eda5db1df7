/**
 * A machine with encrypted STATE and EPHEMERAL: it is installed, starts from its disk, changes the keys of EPHEMERAL and starts
 * again. Debian's cryptsetup judges what is on the disk. With ICHOR_VM_STATE what was installed is kept for the next run.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, openSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readTable } from '../../src/wire/gpt/table.ts'
import { viewOf } from '../../src/wire/probe/view.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'
import { asAdministrator, oneNode } from './one-node.ts'

const folder = stateFolder('encryption')
const path = (name: string) => join(folder, name)
const minutes = 60_000
const uuid = '5f1c9a3e-6b2d-4c7a-9e01-3d8a4b6c7d2f'
const size = 8 * 1024
let machine: TestMachine

const done = (step: string) => existsSync(path(step))
const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)

async function powerOn(): Promise<void> {
  machine = await TestMachine.start({
    console: path('console.log'),
    cdrom: done('installed') ? undefined : join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'),
    disks: [disk(path('system.img'), size, 'virtio', 'system')],
    firmware: uefi(folder),
    memory: 2304,
    restarts: true,
    smbios: [`type=1,uuid=${uuid}`],
  })
}

beforeAll(async () => {
  await powerOn()
  console.log(`console: ${path('console.log')}`)
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

async function configuration(name: string, ephemeral: string): Promise<string> {
  const volume = (id: string, keys: string) =>
    `---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ${id}\nencryption: { provider: luks2, keys: ${keys} }\n`
  const text = await Bun.file(path('controlplane.yaml')).text()
  writeFileSync(path(name), `${text}${volume('STATE', '[{ slot: 0, nodeID: {} }]')}${volume('EPHEMERAL', ephemeral)}`)
  return path(name)
}

/** Whether cryptsetup opens a partition of the disk with a passphrase. */
async function opens(label: string, passphrase: string): Promise<boolean> {
  const file = openSync(path('system.img'), 'r')
  const read = (offset: number, length: number) => {
    const bytes = new Uint8Array(length)
    readSync(file, bytes, 0, length, offset)
    return { offset, bytes }
  }
  const whole = size * 1024 * 1024
  const table = readTable(viewOf(whole, [read(0, 1 << 20), read(whole - (1 << 20), 1 << 20)]), 512)
  const { first = 0 } = table.partitions.find(({ name }) => name === label) ?? {}
  writeFileSync(path('header'), read(first * 512, 16 << 20).bytes)
  const argv = ['/usr/sbin/cryptsetup', 'open', '--test-passphrase', '--disable-locks', '--key-file=-', '--header', path('header')]
  return (await Bun.spawn([...argv, path('header')], { stdin: Buffer.from(passphrase), stderr: 'ignore' }).exited) === 0
}

/** Waits until a volume is ready, and returns its status. */
const volume = (id: string, what: RegExp) =>
  machine.outputs(() => admin('get', 'volumestatus', id, '-o', 'yaml'), new RegExp(`phase: ready[\\s\\S]*${what.source}`), 20 * minutes)

test.skipIf(done('installed'))(
  'it installs, and starts from its encrypted disk',
  async () => {
    await machine.shows(/maintenance: waiting for a machine configuration/, 15 * minutes)
    await machine.shows(/service=apid .*"Health check successful"/, 15 * minutes)
    await oneNode(folder, '--install-disk', '/dev/vda')
    const file = await configuration(
      'whole.yaml',
      '[{ slot: 0, static: { passphrase: first } }, { slot: 1, nodeID: {}, lockToState: true }]',
    )
    await machine.takes(file, 5 * minutes)
    await machine.shows(/sequence=install phase=stopEverything /, 25 * minutes)
    machine.forget()
    await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
    writeFileSync(path('installed'), '')
  },
  60 * minutes,
)

test(
  'its volumes are mounted from their mappings, and cryptsetup opens them with the keys of the configuration',
  async () => {
    const status = await volume('EPHEMERAL', /configuredEncryptionKeys:\s+- nodeID\s+- static/)
    expect(status).toMatch(/mountLocation: \/dev\/dm-\d/)
    expect(await volume('STATE', /encryptionSlot: 0/)).toContain('encryptionProvider: luks2')
    const mounts = await admin('get', 'mountstatus')
    expect(mounts.stdout).toMatch(/\/dev\/dm-\d\s+\/var\s+xfs/)
    expect(mounts.stdout).toMatch(/\/dev\/dm-\d\s+\/system\/state\s+xfs/)
    expect([await opens('STATE', `${uuid}STATE`), await opens('EPHEMERAL', 'first'), await opens('EPHEMERAL', 'other')]).toEqual([
      true,
      true,
      false,
    ])
  },
  45 * minutes,
)

test(
  'its keys are changed while it runs, and open it at the next start',
  async () => {
    // An emulated machine that starts pods may not answer in time.
    const apply = async (name: string, keys: string) => {
      const file = await configuration(name, keys)
      return machine.until(
        'an answer',
        async () => {
          const { stderr } = await admin('apply-config', '--mode', 'no-reboot', '--file', file)
          return !stderr.includes('Unavailable') && `answer: ${stderr}`
        },
        10 * minutes,
      )
    }
    expect(await apply('none.yaml', '[{ slot: 0, static: { passphrase: second } }]')).toContain('none of its keys stays')
    expect(
      await apply('both.yaml', '[{ slot: 0, static: { passphrase: second } }, { slot: 2, static: { passphrase: first } }]'),
    ).not.toContain('error')
    await machine.until('the second key', () => opens('EPHEMERAL', 'second'), 10 * minutes)
    await volume('EPHEMERAL', /configuredEncryptionKeys:\s+- static/)
    expect(await apply('second.yaml', '[{ slot: 0, static: { passphrase: second } }]')).not.toContain('error')
    await machine.until('the first key is gone', async () => !(await opens('EPHEMERAL', 'first')), 10 * minutes)
    machine.forget()
    expect((await admin('reboot', '--mode', 'powercycle', '--wait=false')).code).toBe(0)
    await machine.shows(/machine configuration found.*source=state/, 30 * minutes)
    expect(await volume('EPHEMERAL', /encryptionSlot: 0/)).not.toContain('encryptionFailedSyncs')
  },
  90 * minutes,
)
