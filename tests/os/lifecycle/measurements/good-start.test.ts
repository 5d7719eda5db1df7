import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { metaTags } from '../../../../src/os/block/public.ts'
import { mountId, VolumeMountStatus } from '../../../../src/os/block/resources/volume-mount.ts'
import { PCRMeasurement } from '../../../../src/os/hardware/resources/pcr-measurement.ts'
import { compareStarts } from '../../../../src/os/lifecycle/controllers/measurements.ts'
import { goodStartPath } from '../../../../src/os/lifecycle/measurements/good-start.ts'
import { PCRChange } from '../../../../src/os/lifecycle/resources/pcr-change.ts'
import { MachineStatus } from '../../../../src/os/runtime/resources/machine-status.ts'
import { MetaKey } from '../../../../src/os/runtime/resources/meta.ts'

/** What stays from one start to the next. */
class Disk {
  readonly files = new Map<string, string>()
  readonly modes = new Map<string, number | undefined>()
  readonly meta = new Map<number, string>()
}

/** One start, in which the TPM measured one text into each of two PCRs. */
async function start(disk: Disk, texts: readonly [string, string], { bank = 'sha256' as const, tag = 'v1.0.0' } = {}) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const files = {
    readTextIfThere: (path: string) => disk.files.get(path),
    writeAtomic: async (path: string, text: string, { mode }: { mode?: number } = {}) => {
      disk.files.set(path, text)
      disk.modes.set(path, mode)
    },
  }
  const meta = { get: (tag: number) => disk.meta.get(tag) }
  runtime.register(compareStarts({ kernel: { files }, meta, version: { tag } } as unknown as Parameters<typeof compareStarts>[0]))
  for (const [at, text] of texts.entries())
    store.put(PCRMeasurement, String(at === 0 ? 4 : 11), {
      ...{ bank, value: text.padEnd(64, '0'), explained: true },
      events: [{ index: 1, type: 'EV_IPL', digest: text.padEnd(64, '0'), subject: 'section .cmdline', detail: text }],
    })
  runtime.start()
  const mount = { volumeID: 'STATE', requester: 'machined', target: '/system/state', readOnly: false, detached: false }
  store.put(VolumeMountStatus, mountId('STATE'), { ...mount, disableAccessTime: false, secure: false })
  const status = async (stage: 'booting' | 'running', ready: boolean) => {
    store.put(MachineStatus, 'machine', { stage, status: { ready, unmetConditions: [] } })
    await runtime.settled()
  }
  await status('booting', true)
  return { store, runtime, status, changes: () => store.list(PCRChange).map(({ metadata, spec }) => [metadata.id, spec.changed]) }
}

test('a start is compared with the last good one, and kept when the machine is ready', async () => {
  const disk = new Disk()
  const first = await start(disk, ['one', 'one'])
  expect([first.changes(), disk.files.size]).toEqual([[], 0])
  await first.status('running', false)
  expect(disk.files.size).toBe(0)
  await first.status('running', true)
  expect([disk.files.has(goodStartPath), disk.modes.get(goodStartPath)]).toEqual([true, 0o600])
  first.runtime.stop()
  const second = await start(disk, ['one', 'one'])
  expect(second.changes()).toEqual([
    ['11', false],
    ['4', false],
  ])
  second.runtime.stop()
  const third = await start(disk, ['one', 'two'], { tag: 'v1.1.0' })
  expect(third.store.get(PCRChange, '11')?.spec).toMatchObject({
    ...{ changed: true, release: 'v1.0.0', before: 'one'.padEnd(64, '0') },
    changes: [{ kind: 'changed', type: 'EV_IPL', subject: 'section .cmdline', before: 'one', after: 'two' }],
  })
  // It never was ready: the next start is compared with the same one. When it is ready, it is still shown what it was compared with.
  third.runtime.stop()
  const fourth = await start(disk, ['one', 'two'])
  await fourth.status('running', true)
  expect(fourth.changes()).toContainEqual(['11', true])
  fourth.runtime.stop()
  const fifth = await start(disk, ['one', 'two'])
  expect(fifth.changes()).toContainEqual(['11', false])
  fifth.runtime.stop()
})

test('a release on trial is not good before the trial is over', async () => {
  const disk = new Disk()
  disk.meta.set(metaTags.upgradeFallback, JSON.stringify({ slot: 'b', version: 'v1.1.0', image: 'x', services: [], nodeReady: false }))
  const { status, store, runtime } = await start(disk, ['one', 'one'])
  await status('running', true)
  expect(disk.files.size).toBe(0)
  disk.meta.clear()
  store.put(MetaKey, '0x06', { value: '' })
  await runtime.settled()
  expect(disk.files.has(goodStartPath)).toBe(true)
  runtime.stop()
})

test('a damaged record is replaced; one of another bank is not compared', async () => {
  const disk = new Disk()
  disk.files.set(goodStartPath, '{"pcrs": 1')
  const damaged = await start(disk, ['one', 'one'])
  expect(damaged.changes()).toEqual([])
  await damaged.status('running', true)
  damaged.runtime.stop()
  disk.files.set(goodStartPath, (disk.files.get(goodStartPath) ?? '').replace('"bank":"sha256"', '"bank":"sha384"'))
  const other = await start(disk, ['one', 'one'])
  expect(other.changes()).toEqual([])
  other.runtime.stop()
})
