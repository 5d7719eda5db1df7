import { expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import type { Machine } from '../../../src/os/area.ts'
import { AcquireConfigStatus, acquireId } from '../../../src/os/config/resources/acquire-config.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { withdrawConfig } from '../../../src/os/lifecycle/first-install.ts'
import { machineConfig } from '../../programs/init/sandbox-machine.ts'

/** A machine whose configuration is in force, and what was removed of it. */
function configured() {
  const store = new Store()
  for (const type of [MachineConfig, AcquireConfigStatus]) store.register(type)
  store.put(MachineConfig, 'v1alpha1', machineConfig())
  store.put(AcquireConfigStatus, acquireId, {})
  const removed: string[] = []
  const files = { remove: async (path: string) => void removed.push(path) }
  return { store, removed, withdrawn: withdrawConfig({ store, kernel: { files } } as unknown as Machine) }
}

test('a configuration is withdrawn when nobody sees it in force any more', async () => {
  const { store, removed, withdrawn } = configured()
  expect(store.get(MachineConfig, 'v1alpha1')).toBeUndefined()
  store.destroy(AcquireConfigStatus, acquireId)
  await withdrawn
  expect(removed).toEqual(['/system/state/config.yaml'])
})

test('one that comes before that was seen is gone on with', async () => {
  const { store, withdrawn } = configured()
  store.put(MachineConfig, 'v1alpha1', machineConfig())
  await withdrawn
  expect(store.get(MachineConfig, 'v1alpha1')).toBeDefined()
})
