import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { observeStats } from '../../../src/os/telemetry/controllers/stats.ts'
import { CPUStat } from '../../../src/os/telemetry/resources/cpu-stat.ts'
import { MemoryStat } from '../../../src/os/telemetry/resources/memory-stat.ts'
import { fakeTime } from '../../support/fake-time.ts'

test('processors and memory are read at the start and again after 30 seconds', async () => {
  using time = fakeTime()
  let user = 1234
  const texts: Record<string, () => string> = {
    '/proc/stat': () =>
      `cpu ${user} 0 250\ncpu0 ${user} 0 250\nintr 9 4 5\nctxt 77\nbtime 1700000000\nprocesses 12\nprocs_running 2\nprocs_blocked 1\nsoftirq 6 1 5\n`,
    '/proc/meminfo': () => 'MemTotal: 1000 kB\nMemFree: 400 kB\nMemAvailable: 700 kB\nCommitted_AS: 55 kB\nHugePages_Total: 3\n',
  }
  const store = new Store()
  const runtime = new Runtime(store, { log: silent, clock: time.clock })
  runtime.register(observeStats({ files: { readText: (path) => texts[path]?.() ?? '' } }))
  runtime.start()
  await time.pass(runtime, 1000)
  const times = { user: 12.34, nice: 0, system: 2.5, idle: 0, iowait: 0, irq: 0, softIrq: 0, steal: 0, guest: 0, guestNice: 0 }
  expect(store.get(CPUStat, 'latest')?.spec).toEqual({
    cpu: [times],
    cpuTotal: times,
    irqTotal: 9,
    contextSwitches: 77,
    processCreated: 12,
    processRunning: 2,
    processBlocked: 1,
    softIrqTotal: 6,
  })
  expect(store.get(MemoryStat, 'latest')?.spec).toMatchObject({
    total: 1000,
    used: 600,
    available: 700,
    commitTedas: 55,
    hugePagesTotal: 3,
    slab: 0,
  })
  user = 2000
  await time.pass(runtime, 28_000)
  expect(store.get(CPUStat, 'latest')?.spec.cpuTotal.user).toBe(12.34)
  await time.pass(runtime, 2000)
  expect(store.get(CPUStat, 'latest')?.spec.cpuTotal.user).toBe(20)
  runtime.stop()
})
