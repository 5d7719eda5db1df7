/**
 * The resource engine's figures: `bun bench/cosi.ts [--runs N] [--json]`. Each row is measured in a process of its own, so that none
 * pays for the memory of another; the median of N runs is shown beside its aim.
 */

import { parseArgs } from 'node:util'
import * as v from 'valibot'
import { present } from '../rootfs/build/present.ts'
import { silent } from '../src/cosi/log.ts'
import { describe } from '../src/cosi/meta.ts'
import { defineResource } from '../src/cosi/resource.ts'
import { Runtime } from '../src/cosi/runtime.ts'
import { Store } from '../src/cosi/store.ts'
import { transform } from '../src/cosi/transform.ts'
import { table } from '../src/programs/talosctl/output/table.ts'
import { median } from './median.ts'

const spec = v.object({ name: v.string(), address: v.optional(v.string()), index: v.pipe(v.number(), v.integer()), up: v.boolean() })
const kind = (index: number) => defineResource({ type: `Things${index}.bench.dev`, namespace: 'bench', spec })
const thing = (index: number) => ({ name: `thing-${index}`, address: '10.0.0.1/24', index, up: index % 2 === 0 })
const milliseconds = (since: number) => performance.now() - since

/** Answers every question with nothing. */
const blank: unknown = new Proxy(() => {}, {
  get: (_, key) => {
    if (key === 'then') return undefined
    if (key === Symbol.toPrimitive) return () => ''
    return key === Symbol.iterator ? function* () {} : blank
  },
  apply: () => undefined,
})
const silentKernel = new Proxy({ mode: 'container' }, { get: (kernel, key) => (key === 'mode' ? kernel.mode : blank) })

interface Figure {
  readonly what: string
  readonly unit: string
  readonly aim: string
  measure(): Promise<number>
}

/** The element at a position, counted round and round. */
function at<T>(list: readonly T[], position: number): T {
  return present(list[position % list.length], `element ${position}`)
}

const figures: Record<string, Figure> = {
  writes: {
    what: '100,000 writes on 100 kinds, nobody watching',
    unit: 'writes/s',
    aim: '> 200000',
    async measure() {
      const store = new Store()
      const kinds = Array.from({ length: 100 }, (_, index) => kind(index))
      const ids = Array.from({ length: 100 }, (_, index) => `id-${index}`)
      const since = performance.now()
      for (let index = 0; index < 100_000; index++) store.put(at(kinds, index), at(ids, Math.trunc(index / 100)), thing(index))
      return 100_000 / (milliseconds(since) / 1000)
    },
  },
  deliveries: {
    what: '1,000 watchers of one kind, 1,000 updates: 1,000,000 deliveries in order',
    unit: 'ms',
    aim: '< 3000',
    async measure() {
      const store = new Store()
      const type = kind(0)
      store.create(type, 'it', thing(0))
      const stop = new AbortController()
      const watchers = Array.from({ length: 1000 }, async () => {
        let last = 0
        for await (const { resource } of store.watch(type, { signal: stop.signal })) {
          if (resource?.spec.index !== ++last) throw new Error(`event ${resource?.spec.index} came in the place of ${last}`)
          if (last === 1000) return
        }
      })
      await Bun.sleep(0)
      const since = performance.now()
      for (let index = 1; index <= 1000; index++) {
        store.update(type, 'it', thing(index))
        if (index % 100 === 0) await Bun.sleep(0)
      }
      await Promise.all(watchers)
      return milliseconds(since)
    },
  },
  chain: {
    what: 'a write through a chain of 5 controllers until settled (median of 200)',
    unit: 'ms',
    aim: '< 2',
    async measure() {
      const store = new Store()
      const runtime = new Runtime(store, { log: silent })
      const kinds = Array.from({ length: 6 }, (_, index) => kind(index))
      for (let index = 0; index < 5; index++)
        runtime.register(
          transform({
            name: `bench.Chain${index}`,
            from: at(kinds, index),
            to: at(kinds, index + 1),
            apply: (each) => ({ ...each, index: each.index + 1 }),
          }),
        )
      runtime.start()
      await runtime.settled()
      const taken: number[] = []
      for (let round = 0; round < 200; round++) {
        const since = performance.now()
        store.put(at(kinds, 0), 'it', thing(round * 10))
        await runtime.settled()
        taken.push(milliseconds(since))
        if (store.get(at(kinds, 5), 'it')?.spec.index !== round * 10 + 5) throw new Error('the chain did not settle')
      }
      runtime.stop()
      return median(taken)
    },
  },
  start: {
    what: 'start of every controller of a node, over a kernel that reports nothing, until settled',
    unit: 'ms',
    aim: '',
    async measure() {
      const { areas } = await import('../src/programs/init/areas.ts')
      const { namespaces } = await import('../src/os/namespaces.ts')
      const store = new Store()
      const runtime = new Runtime(store, { log: silent })
      const known: Record<string, unknown> = { store, runtime, log: silent, kernel: silentKernel }
      const machine = new Proxy(known, { get: (_, key) => known[key as string] ?? blank })
      const since = performance.now()
      describe(
        store,
        areas.flatMap(({ resources }) => resources),
        namespaces,
      )
      for (const area of areas) runtime.register(...(area.parts?.(machine as never).controllers ?? []))
      runtime.start()
      await runtime.settled()
      const took = milliseconds(since)
      if (runtime.controllers().length < 100) throw new Error('controllers are missing')
      runtime.stop()
      return took
    },
  },
  memory: {
    what: 'memory of 10,000 resources (resident, more than before)',
    unit: 'MB',
    aim: '< 40',
    async measure() {
      const store = new Store()
      const kinds = Array.from({ length: 100 }, (_, index) => kind(index))
      store.create(at(kinds, 0), 'warm', thing(0))
      Bun.gc(true)
      const before = process.memoryUsage.rss()
      for (let index = 0; index < 10_000; index++) store.create(at(kinds, index), `id-${index}`, thing(index))
      Bun.gc(true)
      const after = process.memoryUsage.rss()
      if (store.all().length !== 10_001) throw new Error('resources are missing')
      return (after - before) / 1e6
    },
  },
}

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' }, one: { type: 'string' } } })

if (values.one) {
  const figure = figures[values.one]
  if (!figure) throw new Error(`there is no figure "${values.one}"`)
  process.stdout.write(`${await figure.measure()}\n`)
  process.exit(0)
}

const shown = (value: number) => (value >= 100 ? String(Math.round(value)) : value.toFixed(2))

const rows = Object.entries(figures).map(([name, { what, unit, aim }]) => {
  const runs = Array.from({ length: Number(values.runs) }, () => {
    const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, import.meta.path, '--one', name])
    if (exitCode !== 0) throw new Error(`${name}: ${stderr.toString()}`)
    return Number(stdout.toString())
  })
  const best = unit === 'writes/s' ? Math.max(...runs) : Math.min(...runs)
  return [what, `${shown(median(runs))} ${unit}`, `${shown(best)} ${unit}`, aim]
})
process.stdout.write(`${table([['FIGURE', 'MEDIAN', 'BEST', 'AIM'], ...rows])}`)
