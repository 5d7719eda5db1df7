/** What becomes of the configuration by which a machine is installed, or could not be. */
import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import type { Machine } from '../../../src/os/area.ts'
import { mountId, mountRequest, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { ConfigState, configPaths } from '../../../src/os/config/config-state.ts'
import { ConfigHistory, itself } from '../../../src/os/config/history/history.ts'
import { previousStatePath, statePath } from '../../../src/os/config/keep.ts'
import { AcquireConfigStatus, acquireId } from '../../../src/os/config/resources/acquire-config.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { install, withdrawConfig } from '../../../src/os/lifecycle/first-install.ts'
import { config, machineInMemory } from '../config/machine.ts'

const text = config('controlplane')

/** A machine whose configuration is in force. */
async function configured() {
  const { machine, store, disk } = machineInMemory({ [previousStatePath]: 'before' })
  store.put(AcquireConfigStatus, acquireId, {})
  const history = new ConfigHistory(machine.kernel.files, machine.log)
  const state = new ConfigState(machine, history, () => 0)
  const id = await history.add({ time: '', mode: 'auto', by: itself, text })
  await state.step('apply', { text })
  return { machine, store, disk, state, outcome: () => history.get(id) }
}

/** Once its configuration has gone. */
async function withdrawing({ machine, store, state }: { machine: Machine; store: Machine['store']; state: ConfigState }) {
  const withdrawn = withdrawConfig(machine, state)
  while (store.get(MachineConfig, 'v1alpha1')) await new Promise(setImmediate)
  return { withdrawn }
}

test('a configuration is withdrawn once no controller sees it', async () => {
  const node = await configured()
  const { withdrawn } = await withdrawing(node)
  node.store.destroy(AcquireConfigStatus, acquireId)
  await withdrawn
  expect([...node.disk.keys()]).toEqual(['/system/state/config-history.json'])
  expect([node.state.inForce, node.state.stays, node.state.state]).toEqual([undefined, undefined, 'none'])
  expect(node.outcome()).toMatchObject({ outcome: 'reverted', reason: 'the machine could not be installed with it' })
})

test('a configuration applied before that is kept', async () => {
  const node = await configured()
  const { withdrawn } = await withdrawing(node)
  await node.state.step('apply', { text })
  await withdrawn
  expect([node.state.inForce, node.disk.get(statePath)]).toEqual([text, text])
})

test('data in memory is copied to the disk, the configuration last', async () => {
  const { disk, state } = await configured()
  const known = state.files()
  expect([...known.keys()].toSorted()).toEqual(configPaths.filter((path) => disk.has(path)).toSorted())
  const content = new Map(disk)
  disk.clear()
  await state.carry(known)
  expect(disk).toEqual(content)
  expect([...disk.keys()].at(-1)).toBe(statePath)
})

test('a second attempt does not wait for the volume on which the first one has saved everything', async () => {
  const { machine, store } = machineInMemory()
  let saves = 0
  const phases = install(machine, { files: () => new Map(), carry: async () => void saves++ })
  const [save] = phases.find(({ name }) => name === 'saveState')?.tasks ?? []
  const attempt = async () => {
    await save?.run({ log: silent, signal: new AbortController().signal })
  }
  store.put(VolumeMountStatus, mountId('STATE'), { ...mountRequest('STATE'), target: '/system/state' })
  await attempt()
  // The end of the volumes unmounts it permanently.
  store.destroy(VolumeMountStatus, mountId('STATE'))
  await attempt()
  expect(saves).toBe(1)
})
