import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { SystemError } from '../../../src/linux/system-error.ts'
import { keepSpaceReserve } from '../../../src/os/block/controllers/space-reserve.ts'
import { mountId, mountRequest, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { reserveOf, spaceReserve } from '../../../src/os/block/space-reserve.ts'
import { fakeTime } from '../../support/fake-time.ts'

const mebibyte = 2 ** 20

/** A disk of a size on which others use some space, and the controller over it. */
function disk(mebibytes: number) {
  const size = mebibytes * mebibyte
  const held = new Map<string, number>()
  const state = { others: 0 }
  const available = () => size - state.others - (held.get(spaceReserve) ?? 0)
  const files = {
    statfs: () => ({ type: 'XFS', blockSize: 4096, size, free: available(), available: available(), files: 1000, filesFree: 1000 }),
    exists: (path: string) => held.has(path),
    mkdirAll() {},
    removeFile: (path: string) => void held.delete(path),
    allocate(path: string, bytes: number) {
      if (bytes > available()) throw new SystemError('fallocate', 'ENOSPC', path)
      held.set(path, bytes)
    },
  }
  const store = new Store()
  const time = fakeTime()
  const runtime = new Runtime(store, { log: silent, clock: time.clock })
  runtime.register(keepSpaceReserve({ files } as never))
  runtime.start()
  const mounted = (readOnly = false) =>
    store.put(VolumeMountStatus, mountId('EPHEMERAL'), { ...mountRequest('EPHEMERAL'), target: '/var', readOnly })
  return {
    held,
    state,
    store,
    mounted,
    /** Lets the next look happen. */
    look: () => time.pass(runtime, 3_000),
    [Symbol.dispose]() {
      runtime.stop()
      time[Symbol.dispose]()
    },
  }
}

test('a fiftieth of the disk is kept back, 64 MiB at most', () => {
  expect([1024, 3200, 1_000_000].map((mebibytes) => reserveOf(mebibytes * mebibyte) / mebibyte)).toEqual([expect.closeTo(20.48, 2), 64, 64])
})

test('the reserve is given up when the rest is full, and taken again when there is ample space', async () => {
  using one = disk(10_000)
  one.mounted()
  await one.look()
  expect([...one.held]).toEqual([[spaceReserve, 64 * mebibyte]])
  for (const [left, kept] of [
    [20, true],
    [15, false],
    // What was given up is free at first, and must not be taken back from those who need it.
    [79, false],
    [255, false],
    [257, true],
    [193, true],
  ] as const) {
    one.state.others = (10_000 - left - (one.held.has(spaceReserve) ? 64 : 0)) * mebibyte
    await one.look()
    expect([left, one.held.has(spaceReserve)]).toEqual([left, kept])
  }
})

test('nothing is kept back before the disk is mounted, after it is released, or on one that is only read', async () => {
  using one = disk(10_000)
  await one.look()
  expect(one.held.size).toBe(0)
  one.mounted(true)
  await one.look()
  expect(one.held.size).toBe(0)
})
