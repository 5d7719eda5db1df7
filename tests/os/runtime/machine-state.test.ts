import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync, hash } from 'node:crypto'
import { makeClock } from '../../../src/cosi/clock.ts'
import type { Controller } from '../../../src/cosi/controller.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { observeDevicesReady } from '../../../src/os/runtime/controllers/devices.ts'
import { observeSecurityState } from '../../../src/os/runtime/controllers/security-state.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { SecurityState } from '../../../src/os/runtime/resources/security-state.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'
import { settleTimeOf } from '../../../src/os/runtime/settle-time.ts'

async function run(...controllers: Controller[]) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(...controllers)
  runtime.start()
  await runtime.settled()
  return { store, runtime }
}

describe('devices', () => {
  const commandLine = (text: string) => ({ readText: () => text })

  test('of a container are ready from the start', async () => {
    const { store } = await run(observeDevicesReady({ mode: 'container', files: commandLine('') }))
    expect(store.get(DevicesStatus, 'devices')?.spec).toEqual({ ready: true })
  })

  test('of a machine are ready when udevd has named them', async () => {
    const { store, runtime } = await run(observeDevicesReady({ mode: 'metal', files: commandLine('quiet') }))
    store.put(Service, 'udevd', { running: true, healthy: false, unknown: true })
    await runtime.settled()
    expect(store.get(DevicesStatus, 'devices')).toBeUndefined()
    store.put(Service, 'udevd', { running: true, healthy: true, unknown: false })
    await runtime.settled()
    expect(store.get(DevicesStatus, 'devices')?.spec).toEqual({ ready: true })
  })

  test('that appear late get the time that the kernel command line gives them', async () => {
    let now = 0
    const clock = makeClock({ elapsed: () => now })
    const store = new Store()
    const runtime = new Runtime(store, { log: silent, clock })
    runtime.register(observeDevicesReady({ mode: 'metal', files: commandLine('talos.device.settle_time=1m10s') }))
    runtime.start()
    const round = async (at: number, healthy: boolean) => {
      now = at
      store.put(Service, 'udevd', { running: true, healthy, unknown: false })
      await runtime.settled()
      return store.get(DevicesStatus, 'devices')?.spec
    }
    expect(await round(0, false)).toBeUndefined()
    expect(await round(20_000, true)).toBeUndefined()
    // What happens to udevd meanwhile does not restart the time.
    expect(await round(60_000, false)).toBeUndefined()
    expect(await round(89_999, true)).toBeUndefined()
    await round(90_000, false)
    expect(await round(90_000, true)).toEqual({ ready: true })
  })

  test.each([
    ['talos.device.settle_time=30s', 30_000],
    ['talos.device.settle_time=30s talos.device.settle_time=0', 0],
    ['talos.device.settle_time=10m', 600_000],
    ['talos.device.settle_time=10m1s', 0],
    ['talos.device.settle_time=-5s', 0],
    ['talos.device.settle_time=5', 0],
    ['talos.device.settle_time', 0],
    ['quiet', 0],
  ])('%s: %d ms', (text, expected) => {
    expect(settleTimeOf(text)).toBe(expected)
  })
})

describe('the state of security', () => {
  const variable = (name: string) => `/sys/firmware/efi/efivars/${name}-8be4df61-93ca-11d2-aa0d-00e098032b8c`
  const on = Uint8Array.of(6, 0, 0, 0, 1)
  const secure: Record<string, Uint8Array> = {
    [variable('SecureBoot')]: on,
    '/sys/module/module/parameters/sig_enforce': Buffer.from('Y\n'),
  }
  const kernel = (files: Record<string, Uint8Array>) => ({
    exists: (path: string) => path in files,
    read: (path: string) => files[path]!,
    readTextIfThere: (path: string) => (path in files ? Buffer.from(files[path]!).toString() : undefined),
  })
  const stateOf = async (files: Record<string, Uint8Array>, mode: 'metal' | 'container' = 'metal') => {
    const { store } = await run(observeSecurityState({ mode, files: kernel(files) }))
    return store.get(SecurityState, 'securitystate')?.spec
  }
  const plain = { secureBoot: false, selinuxState: 'disabled', fipsState: 'disabled' }

  test('of a machine is what its firmware and kernel say', async () => {
    expect(await stateOf(secure)).toEqual({ ...plain, secureBoot: true, moduleSignatureEnforced: true })
    expect(await stateOf({})).toEqual(plain)
    expect(await stateOf({ [variable('SecureBoot')]: on, [variable('SetupMode')]: on })).toEqual(plain)
  })

  test('names the image and the key of its policy', async () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const pem = Buffer.from(publicKey.export({ type: 'spki', format: 'pem' }))
    const digest = hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'hex').toUpperCase()
    const image = {
      '/sys/firmware/efi/efivars/StubInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f': on,
      '/run/ichor/tpm2-pcr-public-key.pem': pem,
    }
    const pcrSigningKeyFingerprint = digest.match(/../g)!.join(':')
    expect(await stateOf(image)).toEqual({ ...plain, bootedWithUKI: true, pcrSigningKeyFingerprint })
    expect(await stateOf({ '/run/ichor/tpm2-pcr-public-key.pem': Buffer.from('no key') })).toEqual(plain)
  })

  test('of SELinux counts where it was requested', async () => {
    const enforce = { '/sys/fs/selinux/enforce': Buffer.from('1') }
    expect(await stateOf({ ...enforce, '/proc/cmdline': Buffer.from('quiet') })).toEqual(plain)
    expect(await stateOf({ ...enforce, '/proc/cmdline': Buffer.from('a selinux=1 b') })).toEqual({
      ...plain,
      selinuxState: 'enabled, enforcing',
    })
    const permissive = { '/sys/fs/selinux/enforce': Buffer.from('0'), '/proc/cmdline': Buffer.from('selinux=1\n') }
    expect(await stateOf(permissive)).toEqual({ ...plain, selinuxState: 'enabled, permissive' })
    const bySecurity = { '/sys/fs/selinux/enforce': Buffer.from('1'), '/proc/cmdline': Buffer.from('security=selinux\n') }
    expect(await stateOf(bySecurity)).toEqual({ ...plain, selinuxState: 'enabled, enforcing' })
  })

  test('of a container has nothing about its host', async () => {
    expect(await stateOf(secure, 'container')).toEqual({ secureBoot: false })
  })
})
