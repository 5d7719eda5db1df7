/** A machine whose STATE and EPHEMERAL are encrypted: it installs itself, starts from its disk, changes keys and is reset. */
import { afterAll, expect, test } from 'bun:test'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { reset } from '../../../src/os/lifecycle/reset.ts'
import { Hardware } from './sandbox-hardware.ts'
import { ended, installedOn, machineConfig, startMachine } from './sandbox-machine.ts'
import { type SandboxNode, unexpected, useSandbox } from './sandbox-node.ts'
import { headerOf, opensSlot, ready, status, stop as stopNode, until, volume } from './sandbox-volumes.ts'

useSandbox()
const hardware = new Hardware(true)
afterAll(() => {
  hardware.remove()
  expect(unexpected).toEqual([])
})

const configuration = (ephemeral: string) =>
  `${machineConfig()}${volume('STATE', '[{ slot: 0, nodeID: {} }, { slot: 3, static: { passphrase: spare } }]')}${volume('EPHEMERAL', ephemeral)}`
const first = '[{ slot: 0, static: { passphrase: first } }, { slot: 1, nodeID: {}, lockToState: true }]'

const uuid = '3e2a4d50-71c9-4a55-9d4e-0b0f6a1c2d3e'
const uncounted = true
const header = (index: number) => headerOf(hardware, index)
const opens = (index: number, slot: number, passphrase: string) => opensSlot(hardware, index, slot, passphrase)

async function stop(here: SandboxNode): Promise<void> {
  await stopNode(here)
  expect([...hardware.mappings.keys()]).toEqual([])
}

test('it is created by an installation', async () => {
  const here = await startMachine(hardware, { from: 'medium', config: configuration(first), uuid, uncounted })
  expect(await ended(here)).toEqual(['reboot'])
  expect((await installedOn(hardware)).labels).toEqual(['EFI', 'META', 'STATE', 'EPHEMERAL'])
  expect([...hardware.mappings.keys()]).toEqual([])
  expect(Object.keys((await header(3)).metadata.keyslots)).toEqual(['0', '3'])
  expect([await opens(3, 0, `${uuid}STATE`), await opens(3, 3, 'spare')]).toEqual([true, true])
}, 60_000)

test('it starts from its disk, whose STATE is opened with what META specifies', async () => {
  const here = await startMachine(hardware, { from: 'disk', uuid, uncounted })
  await until(here, 'EPHEMERAL', () => ready(here))
  expect(here.machine.store.get(MachineConfig, 'v1alpha1')?.spec).toContain('passphrase: spare')
  expect(here.machine.kernel.mount.mountAt('/var')?.source).toMatch(/^\/dev\/dm-\d$/)
  await until(here, 'all keys of EPHEMERAL', () => status(here, 'EPHEMERAL')?.encryptionFailedSyncs === undefined)
  expect(status(here, 'EPHEMERAL')).toMatchObject({
    phase: 'ready',
    location: '/dev/vda4',
    filesystem: 'xfs',
    encryptionProvider: 'luks2',
    encryptionSlot: 0,
    configuredEncryptionKeys: ['nodeID', 'static'],
  })
  expect(status(here, 'STATE')).toMatchObject({ encryptionSlot: 0, uuid: (await header(3)).uuid })
  expect([await opens(4, 0, 'first'), Object.keys((await header(4)).metadata.keyslots)]).toEqual([true, ['0', '1']])

  // Keys follow the configuration at once, if one of them stays.
  const apply = (config: string) => here.machine.config.apply(config, 'no-reboot')
  await expect(apply(configuration('[{ slot: 0, static: { passphrase: other } }]'))).rejects.toThrow('none of its keys stays')
  await apply(configuration('[{ slot: 0, static: { passphrase: second } }, { slot: 2, static: { passphrase: first } }]'))
  await until(here, 'the new keys', () => status(here, 'EPHEMERAL')?.configuredEncryptionKeys?.join() === 'static')
  expect(Object.keys((await header(4)).metadata.keyslots)).toEqual(['0', '2'])
  expect([await opens(4, 0, 'second'), await opens(4, 2, 'first'), await opens(4, 0, 'first')]).toEqual([true, true, false])
  await apply(configuration('[{ slot: 0, static: { passphrase: second } }]'))
  await until(here, 'the removal', async () => Object.keys((await header(4)).metadata.keyslots).join() === '0')
  await stop(here)
}, 120_000)

test('it opens with the changed keys, and a reset leaves nothing that a key could open', async () => {
  const here = await startMachine(hardware, { from: 'disk', uuid, uncounted })
  await until(here, 'EPHEMERAL', () => ready(here))
  expect(here.machine.meta.get(9)).toContain('"KeyData":"spare"')
  const { metadata } = await header(4)
  const area = Number(metadata.keyslots[0]?.area.offset)
  await here.machine.sequencer.run(
    'reset',
    reset(here.machine, { graceful: false, reboot: false, system: ['STATE', 'EPHEMERAL'], disks: [] }),
  )
  expect(await ended(here)).toEqual(['shutdown'])
  expect((await hardware.open('/dev/vda4').read(area, 4096)).every((byte) => byte === 0)).toBe(true)
  for (const index of [3, 4]) await expect(header(index)).rejects.toThrow('no signature')
  expect(here.machine.meta.get(9)).toBeUndefined()
}, 60_000)
