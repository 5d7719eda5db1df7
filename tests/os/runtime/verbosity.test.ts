import { expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { isVerbose } from '../../../src/os/runtime/verbosity.ts'

test('"debug: true" makes the console verbose, from the moment it is in force', () => {
  const store = new Store()
  expect(isVerbose(store)).toBe(false)
  store.put(MachineConfig, 'v1alpha1', 'version: v1alpha1\nmachine: {type: worker}\ncluster: {}\n')
  expect(isVerbose(store)).toBe(false)
  store.put(MachineConfig, 'v1alpha1', 'version: v1alpha1\ndebug: true\nmachine: {type: worker}\ncluster: {}\n')
  expect(isVerbose(store)).toBe(true)
})
