import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { ConfigDesk } from '../../../src/os/config/desk.ts'
import { generate } from '../../../src/os/config/generate/generate.ts'
import { newSecrets } from '../../../src/os/config/generate/secrets.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service-request.ts'

const secrets = await newSecrets({})
const config = generate('worker', { clusterName: 'c', endpoint: 'https://10.0.0.1:6443', secrets }).toString()

function desk() {
  const store = new Store()
  return { store, desk: new ConfigDesk({ store, log: silent, kernel: { mode: 'container' } } as never) }
}

test('a configuration is put in force and kept', async () => {
  const { store, desk: taker } = desk()
  await taker.apply(config, 'auto')
  expect(store.get(MachineConfig, 'v1alpha1')?.spec).toBe(config)
  expect(store.get(MachineConfig, 'persistent')?.spec).toBe(config)
})

test('a broken configuration changes nothing and says where it is broken', async () => {
  const { store, desk: taker } = desk()
  await expect(taker.apply(`${config}\nmachin: {}\n`, 'auto')).rejects.toThrow('machin')
  expect(store.get(MachineConfig, 'v1alpha1')).toBeUndefined()
})

test('a dry run shows what would change and changes nothing', async () => {
  const { store, desk: taker } = desk()
  await taker.apply(config, 'auto')
  const { details } = await taker.apply(config.replace(/^( +)type: worker$/m, '$1type: worker\n$1nodeLabels: {a: b}'), 'auto', {
    dryRun: true,
  })
  expect(details).toMatch(/^\+ +nodeLabels: \{a: b\}$/m)
  expect(store.get(MachineConfig, 'v1alpha1')?.metadata.version).toBe(1)
})

test('a staged configuration waits for the next start', async () => {
  const { store, desk: taker } = desk()
  await taker.apply(config, 'staged')
  expect(store.get(MachineConfig, 'v1alpha1')).toBeUndefined()
  expect(store.get(MachineConfig, 'persistent')?.spec).toBe(config)
})

test('a configuration on trial goes back to the one before it when its time is over', async () => {
  const { store, desk: taker } = desk()
  await taker.apply(config, 'auto')
  await taker.apply(`${config}# on trial\n`, 'try', { trialFor: 20 })
  expect(store.get(MachineConfig, 'v1alpha1')?.spec).toContain('on trial')
  await store.until(MachineConfig, 'v1alpha1', ({ spec }) => spec === config)
  expect(store.get(MachineConfig, 'persistent')?.spec).toBe(config)
})

test('a machine waits in maintenance until its first configuration', async () => {
  const { store, desk: taker } = desk()
  store.put(MaintenanceServiceRequest, 'maintenance', {})
  expect(taker.inMaintenance).toBe(true)
  await taker.apply(config, 'reboot')
  expect(taker.inMaintenance).toBe(false)
})
