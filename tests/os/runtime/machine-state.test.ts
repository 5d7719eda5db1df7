import { describe, expect, test } from 'bun:test'
import type { Controller } from '../../../src/cosi/controller.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { observeDevicesReady } from '../../../src/os/runtime/controllers/devices.ts'
import { observeSecurityState } from '../../../src/os/runtime/controllers/security-state.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { SecurityState } from '../../../src/os/runtime/resources/security-state.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'

async function run(...controllers: Controller[]) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(...controllers)
  runtime.start()
  await runtime.settled()
  return { store, runtime }
}

describe('devices', () => {
  test('of a container are ready from the start', async () => {
    const { store } = await run(observeDevicesReady({ mode: 'container' }))
    expect(store.get(DevicesStatus, 'devices')?.spec).toEqual({ ready: true })
  })

  test('of a machine are ready when udevd has named them', async () => {
    const { store, runtime } = await run(observeDevicesReady({ mode: 'metal' }))
    store.put(Service, 'udevd', { running: true, healthy: false, unknown: true })
    await runtime.settled()
    expect(store.get(DevicesStatus, 'devices')).toBeUndefined()
    store.put(Service, 'udevd', { running: true, healthy: true, unknown: false })
    await runtime.settled()
    expect(store.get(DevicesStatus, 'devices')?.spec).toEqual({ ready: true })
  })
})

describe('the state of security', () => {
  const secure: Record<string, Uint8Array> = {
    '/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c': Uint8Array.of(6, 0, 0, 0, 1),
    '/sys/module/module/parameters/sig_enforce': Buffer.from('Y\n'),
  }
  const kernel = (files: Record<string, Uint8Array>) => ({ exists: (path: string) => path in files, read: (path: string) => files[path]! })

  test('of a machine is what its firmware and kernel say', async () => {
    const { store } = await run(observeSecurityState({ mode: 'metal', files: kernel(secure) }))
    expect(store.get(SecurityState, 'securitystate')?.spec).toEqual({ secureBoot: true, moduleSignatureEnforced: true })
    const plain = await run(observeSecurityState({ mode: 'metal', files: kernel({}) }))
    expect(plain.store.get(SecurityState, 'securitystate')?.spec).toEqual({ secureBoot: false })
  })

  test('of a container has nothing about its host', async () => {
    const { store } = await run(observeSecurityState({ mode: 'container', files: kernel(secure) }))
    expect(store.get(SecurityState, 'securitystate')?.spec).toEqual({ secureBoot: false })
  })
})
