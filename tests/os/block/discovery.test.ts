/** What is on disks, while one of them does not answer. */
import { expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { SystemError } from '../../../src/linux/system-error.ts'
import { observeVolumes } from '../../../src/os/block/controllers/discovery.ts'
import { BlockDevice } from '../../../src/os/block/resources/block-device.ts'
import { DiscoveredVolume } from '../../../src/os/block/resources/discovered-volume.ts'

/** A disk, `sda`, whose reads may fail, and the controller over it. */
function disk() {
  const state = { fails: '' as '' | 'EIO' | 'ENXIO', elapsed: 0, reads: 0 }
  const size = 1 << 20
  const read = async (_: number, length: number) => {
    state.reads++
    if (state.fails) throw new SystemError('read', state.fails, '/dev/sda')
    return Buffer.alloc(length)
  }
  const block = { openDevice: async () => ({ size, sectorSize: 512, read, close: async () => {} }) }
  const files = { list: () => [], readTextIfThere: () => undefined, readlink: () => '', exists: () => false }
  const store = new Store()
  const clock = makeClock({ elapsed: () => state.elapsed, sleep: async () => {} })
  const runtime = new Runtime(store, { log: silent, clock })
  runtime.register(observeVolumes({ block, files } as never))
  runtime.start()
  let generation = 0
  const put = (id: string) =>
    store.put(BlockDevice, id, { type: 'disk', major: 8, minor: 0, devicePath: '/devices/sda', generation: generation++ })
  return {
    state,
    /** An event of the kernel for the disk. */
    async changes() {
      put('sda')
      await runtime.settled()
    },
    /** Lets time pass, and has the controller look. */
    async later(milliseconds: number) {
      state.elapsed += milliseconds
      put('fd0')
      await runtime.settled()
    },
    there: () => store.get(DiscoveredVolume, 'sda') !== undefined,
    [Symbol.dispose]: () => runtime.stop(),
  }
}

test('a disk that does not answer for a while keeps what was on it', async () => {
  using one = disk()
  await one.changes()
  expect(one.there()).toBe(true)
  one.state.fails = 'EIO'
  await one.changes()
  expect(one.there()).toBe(true)
  const { reads } = one.state
  await one.later(9_000)
  expect(one.state.reads).toBe(reads)
  await one.later(2_000)
  expect(one.state.reads).toBeGreaterThan(reads)
  one.state.fails = ''
  await one.later(10_000)
  const { reads: answered } = one.state
  await one.later(60_000)
  expect([one.there(), one.state.reads]).toEqual([true, answered])
})

test('one that has not answered for a minute has nothing on it, and is left alone until it changes', async () => {
  using one = disk()
  await one.changes()
  one.state.fails = 'EIO'
  await one.changes()
  for (let look = 1; look <= 5; look++) await one.later(10_000)
  expect(one.there()).toBe(true)
  await one.later(10_000)
  expect(one.there()).toBe(false)
  const { reads } = one.state
  await one.later(60_000)
  expect(one.state.reads).toBe(reads)
  one.state.fails = ''
  await one.changes()
  expect(one.there()).toBe(true)
})

test('one without a medium has nothing on it at once', async () => {
  using one = disk()
  await one.changes()
  one.state.fails = 'ENXIO'
  await one.changes()
  expect(one.there()).toBe(false)
})

test('one that has never answered is not on the list', async () => {
  using one = disk()
  one.state.fails = 'EIO'
  await one.changes()
  await one.later(10_000)
  expect(one.there()).toBe(false)
})
