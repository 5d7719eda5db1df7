/** A machine that moved to another board: no key of its volumes works there, and its recovery key opens them. */
import { afterAll, expect, test } from 'bun:test'
import { VolumeRecovery } from '../../../src/os/block/resources/volume-recovery.ts'
import { inMaintenance } from '../../../src/os/config/maintenance.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service.ts'
import type { Context } from '../../../src/rpc/server/method.ts'
import { decrypt } from '../../../src/wire/age/file.ts'
import { newIdentity, parseIdentity, recipientOf } from '../../../src/wire/age/keys.ts'
import { newRecoveryKey } from '../../../src/wire/luks2/recovery-key.ts'
import { Hardware } from './sandbox-hardware.ts'
import { ended, machineConfig, startMachine } from './sandbox-machine.ts'
import { problems, type SandboxNode, unexpected, useSandbox } from './sandbox-node.ts'
import { headerOf, opensSlot, ready, status, stop, until as untilWithin, volume } from './sandbox-volumes.ts'

useSandbox()
const hardware = new Hardware(true)
afterAll(() => {
  hardware.remove()
  expect(unexpected).toEqual([])
})

const [board, otherBoard] = ['3e2a4d50-71c9-4a55-9d4e-0b0f6a1c2d3e', '9d2f6a1c-0b7e-4c35-8d1e-5a3b7c9d1e2f']
const uncounted = true
const configuration = `${machineConfig()}${volume('STATE', '[{ slot: 0, nodeID: {} }]')}${volume('EPHEMERAL', '[{ slot: 0, nodeID: {} }]')}`
const identity = parseIdentity(newIdentity())

/** A longer limit: a locked machine tries every key again and again. */
const until = (here: SandboxNode, what: string, holds: () => boolean | Promise<boolean>) => untilWithin(here, what, holds, 90_000)

/** The only recovery key of a volume. */
const recovery = ({ machine: { store } }: SandboxNode, id: string) => {
  const { locked, keys } = store.get(VolumeRecovery, id)?.spec ?? {}
  return keys?.[0] && { locked, ...keys[0] }
}
const header = (index: number) => headerOf(hardware, index)
const opens = (index: number, slot: number, passphrase: string) => opensSlot(hardware, index, slot, passphrase)

/** Calls a method of the node's API. */
async function call(here: SandboxNode, name: string, request: object): Promise<Record<string, unknown>> {
  const method = here.machine.methods.find(({ path }) => path === `ichor.v1.VolumeService/${name}`)
  const reply = (await method?.handle(request as never, {} as Context)) as { messages: Record<string, unknown>[] }
  return reply.messages[0] ?? {}
}

let key = ''

test('a recovery key opens every volume, is replaced by the next, and stays when other keys change', async () => {
  expect(await ended(await startMachine(hardware, { from: 'medium', config: configuration, uuid: board, uncounted }))).toEqual(['reboot'])
  const here = await startMachine(hardware, { from: 'disk', uuid: board, uncounted })
  await until(here, 'EPHEMERAL', () => ready(here))
  const first = await call(here, 'NewRecoveryKey', { recipients: [] })
  expect(first).toMatchObject({ volumes: ['STATE', 'EPHEMERAL'], failed: [] })
  await until(here, 'its resource', () => recovery(here, 'STATE') !== undefined)
  const before = recovery(here, 'STATE')?.slot ?? -1
  expect(await opens(3, before, String(first.key))).toBe(true)
  key = String((await call(here, 'NewRecoveryKey', { recipients: [recipientOf(identity)] })).key)
  await until(here, 'the next', () => recovery(here, 'STATE')?.escrow !== '')
  for (const [id, index] of [
    ['STATE', 3],
    ['EPHEMERAL', 4],
  ] as const) {
    const { slot, locked, escrow } = recovery(here, id) ?? { slot: -1, escrow: '' }
    expect([locked, await opens(index, slot, key), await opens(index, slot, String(first.key))]).toEqual([false, true, false])
    expect(Object.keys((await header(index)).metadata.keyslots)).toEqual(['0', String(slot)])
    const file = Buffer.from(escrow.replaceAll(/-----.*-----/g, ''), 'base64')
    const chunks = (async function* () {
      yield new Uint8Array(file)
    })()
    expect(Buffer.concat(await Array.fromAsync(decrypt(chunks, [identity]))).toString()).toBe(`${key}\n`)
  }
  await here.machine.config.apply(
    configuration.replace(/slot: 0, nodeID: \{\} \}\]\n$/, 'slot: 0, nodeID: {} }, { slot: 1, static: { passphrase: p } }]\n'),
    'no-reboot',
  )
  await until(here, 'another key', () => status(here, 'EPHEMERAL')?.configuredEncryptionKeys?.join() === 'nodeID,static')
  expect(await opens(4, recovery(here, 'EPHEMERAL')?.slot ?? -1, key)).toBe(true)
  await expect(call(here, 'Unlock', { recoveryKey: key })).rejects.toThrow('no volume waits for a recovery key')
  await expect(call(here, 'NewRecoveryKey', { recipients: ['age1'] })).rejects.toThrow('is no recipient of age')
  expect(problems(here).join()).not.toContain(key)
  await stop(here)
}, 240_000)

test('on another board the volumes are locked, and nothing but the recovery key is accepted', async () => {
  const here = await startMachine(hardware, { from: 'disk', uuid: otherBoard, uncounted })
  const { store } = here.machine
  await until(here, 'the API', () => store.get(MaintenanceServiceRequest, 'maintenance') !== undefined)
  expect(recovery(here, 'STATE')).toMatchObject({ locked: true, escrow: expect.stringContaining('AGE ENCRYPTED FILE') })
  expect(status(here, 'STATE')).toMatchObject({
    phase: 'failed',
    errorMessage: expect.stringContaining('no key opens encrypted volume "STATE"'),
  })
  expect(inMaintenance(store)).toBe(false)
  await expect(call(here, 'Unlock', { recoveryKey: 'nonsense' })).rejects.toThrow('the recovery key is mistyped')
  await expect(call(here, 'Unlock', { recoveryKey: newRecoveryKey() })).rejects.toThrow('opens none of the volumes STATE')
  const both = await Promise.allSettled([
    call(here, 'Unlock', { recoveryKey: key.toLowerCase() }),
    call(here, 'Unlock', { recoveryKey: key }),
  ])
  expect(both[0]).toMatchObject({ status: 'fulfilled', value: { volumes: ['STATE'] } })
  expect(both[1]).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining('another recovery key is being tried') } })
  await until(here, 'STATE', () => store.get(MachineConfig, 'v1alpha1') !== undefined)
  await until(here, 'EPHEMERAL', () => ready(here))
  expect(store.get(MaintenanceServiceRequest, 'maintenance')).toBeUndefined()
  // The keys of this board are in place from now on, and the recovery key stays.
  await until(here, 'its own key', () => opens(3, 0, `${otherBoard}STATE`))
  await until(here, 'its own key', () => opens(4, 0, `${otherBoard}EPHEMERAL`))
  expect(await opens(3, recovery(here, 'STATE')?.slot ?? -1, key)).toBe(true)
  await stop(here)
}, 240_000)

test('it starts there by itself from now on', async () => {
  const here = await startMachine(hardware, { from: 'disk', uuid: otherBoard, uncounted })
  await until(here, 'EPHEMERAL', () => ready(here))
  expect(status(here, 'STATE')).toMatchObject({ encryptionSlot: 0 })
  await stop(here)
}, 240_000)

test('recipients of the configuration get a key of their own, beside the printed one', async () => {
  const here = await startMachine(hardware, { from: 'disk', uuid: otherBoard, uncounted })
  const { store } = here.machine
  await until(here, 'EPHEMERAL', () => ready(here))
  const printed = recovery(here, 'STATE')?.slot ?? -1
  const document = `---\napiVersion: v1alpha1\nkind: DiskRecoveryConfig\nrecipients: [${recipientOf(identity)}]\n`
  await here.machine.config.apply(`${configuration}${document}`, 'no-reboot')
  const escrows = () =>
    ['STATE', 'EPHEMERAL'].map((id) => store.get(VolumeRecovery, id)?.spec.keys.find(({ recipients }) => recipients)?.escrow)
  await until(here, 'one key in both', () => escrows().every((escrow) => escrow !== undefined && escrow === escrows()[0]))
  expect(await opens(3, printed, key)).toBe(true)
  await stop(here)
}, 240_000)
