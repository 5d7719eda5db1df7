import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createLogger, type LogEntry } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { handleOutOfMemory } from '../../../../src/os/runtime/controllers/oom.ts'
import { OOMAction } from '../../../../src/os/runtime/resources/oom-action.ts'
import { fakeTime } from '../../../support/fake-time.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

/** Files of control groups in the kernel's form, of a machine with pods of each class: path, a tab, the text with its lines joined by `|`. */
const sample = readFileSync(join(import.meta.dir, 'cgroups.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.split('\t') as [path: string, text: string])

/** A machine whose handler runs on a copy of the sample. */
function machine({ version = 2, config = '' }: { version?: 1 | 2; config?: string } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'ichor-cgroups-'))
  folders.push(root)
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  for (const [path, text] of sample) write(path, `${text.replaceAll('|', '\n')}\n`)
  const calls: string[] = []
  const read: string[] = []
  const log: LogEntry[] = []
  const time = fakeTime()
  const store = new Store()
  const runtime = new Runtime(store, { log: createLogger((entry) => log.push(entry)), clock: time.clock })
  const processes: Record<string, number[]> = { 'kubepods/besteffort/pod-a': [0, 100, 101], 'kubepods/burstable/pod-b': [200] }
  runtime.register(
    handleOutOfMemory({
      files: {
        ...files,
        readTextIfThere: (path) => {
          read.push(path.slice(root.length + 1))
          const [, pid] = /^\/proc\/(\d+)\/cmdline$/.exec(path) ?? []
          return pid ? `/bin/eater\0--pid\0${pid}\0` : files.readTextIfThere(path)
        },
      },
      cgroup: {
        hierarchy: () => ({ version, roots: { unified: root } }),
        processesIn: (path) => processes[path] ?? [],
        killCgroup: (path) => void calls.push(`kill ${path}`),
      },
      process: {
        openProcess: (pid) => {
          calls.push(`open ${pid}`)
          return { releaseMemory: () => void calls.push(`release ${pid}`), close: () => void calls.push(`close ${pid}`) }
        },
      },
    }),
  )
  if (config) store.put(MachineConfig, 'v1alpha1', config)
  runtime.start()
  return {
    ...{ calls, read, time, store, write },
    messages: () => log.map(({ message }) => message),
    pass: (ms: number) => time.pass(runtime, ms),
    actions: () => store.list(OOMAction).map(({ metadata, spec }) => ({ id: metadata.id, ...spec })),
    /** Changes the pressure of the whole machine. */
    press: (avg10: number) =>
      write(
        'memory.pressure',
        `some avg10=${avg10} avg60=0.00 avg300=0.00 total=0\nfull avg10=${avg10}.00 avg60=0.00 avg300=0.00 total=0\n`,
      ),
    [Symbol.dispose]() {
      runtime.stop()
      time[Symbol.dispose]()
    },
  }
}

const oom = (keys: string) => `apiVersion: v1alpha1\nkind: OOMConfig\n${keys}`

test('a machine at rest kills nothing', async () => {
  using at = machine()
  await at.pass(10_000)
  expect([at.calls, at.actions(), at.messages()]).toEqual([[], [], []])
})

test('bytes of groups are read only for an expression that uses them', async () => {
  const bytes = /memory\.(current|peak|max)$/
  using usual = machine()
  await usual.pass(2_000)
  expect(usual.read.filter((path) => bytes.test(path))).toEqual([])
  expect(usual.read.filter((path) => path === 'system/memory.pressure').length).toBeGreaterThan(2)
  using own = machine({ config: oom('triggerExpression: "qos_memory_current[System] > 1e15"\n') })
  await own.pass(2_000)
  expect(own.read).toContain('system/memory.current')
})

test('under pressure the best effort pod with most memory is killed, its processes opened before and released afterwards', async () => {
  using at = machine()
  await at.pass(1000)
  at.press(80)
  await at.pass(1000)
  expect(at.calls).toEqual([
    'open 100',
    'open 101',
    'kill kubepods/besteffort/pod-a',
    'release 100',
    'release 101',
    'close 100',
    'close 101',
  ])
  const [action] = at.actions()
  expect(action).toMatchObject({ id: '0', processes: ['/bin/eater --pid 100', '/bin/eater --pid 101'] })
  const context = JSON.parse(action?.triggerContext ?? '')
  expect(context).toMatchObject({ memory_full_avg10: 80, time_since_trigger: 2 ** 63 })
  expect(Object.keys(context.qos_memory_current)).toEqual(['0', '1', '2', '3', '4'])
  expect(at.messages()).toEqual(['cgroup killed because memory is short'])
})

test('after a kill the default gives the averages a minute to settle', async () => {
  using at = machine()
  at.press(80)
  await at.pass(59_000)
  expect(at.actions().length).toBe(1)
  await at.pass(2_000)
  expect(at.actions().length).toBe(2)
})

test('an expression of the configuration alone decides when the next kill follows', async () => {
  using at = machine({
    config: oom('triggerExpression: memory_full_avg10 > 75.0 && time_since_trigger > duration("10s")\n'),
  })
  at.press(80)
  await at.pass(9_000)
  expect(at.actions().length).toBe(1)
  await at.pass(2_000)
  expect(at.actions().length).toBe(2)
})

test('classes are strict by default, and scores decide alone when they are not', async () => {
  const ranking =
    'cgroupRankingExpression: "class == Burstable ? 9.0 : (class < Podruntime ? 1.0 : 0.0)"\ntriggerExpression: time_since_trigger > duration("1h")\n'
  using strict = machine({ config: oom(ranking) })
  await strict.pass(1_000)
  expect(strict.calls.filter((call) => call.startsWith('kill'))).toEqual(['kill kubepods/besteffort/pod-a'])
  using loose = machine({ config: oom(`${ranking}strictCgroupClassOrdering: false\n`) })
  await loose.pass(1_000)
  expect(loose.calls.filter((call) => call.startsWith('kill'))).toEqual(['kill kubepods/burstable/pod-b'])
})

test('guaranteed pods are a class, although the kubelet puts them beside the others', async () => {
  using at = machine({
    config: oom('cgroupRankingExpression: "class == Guaranteed ? 1.0 : 0.0"\ntriggerExpression: time_since_trigger > duration("1h")\n'),
  })
  await at.pass(1_000)
  expect(at.calls).toEqual(['kill kubepods/pod-c'])
})

test('changes are per second, and a change of the configuration does not shorten the interval they are computed over', async () => {
  using at = machine({ config: oom('sampleInterval: 2s\ntriggerExpression: "d_memory_full_total > 600.0"\n') })
  const stalled = (total: number) => at.write('memory.pressure', `full avg10=0.00 avg60=0.00 avg300=0.00 total=${total}\n`)
  stalled(0)
  await at.pass(1_000)
  stalled(1_000)
  at.store.put(MachineConfig, 'v1alpha1', oom('sampleInterval: 2s\ntriggerExpression: "d_memory_full_total > 501.0"\n'))
  await at.pass(1_500)
  expect(at.actions()).toEqual([])
  stalled(3_000)
  await at.pass(2_000)
  expect(at.actions().length).toBe(1)
})

test('the last fifty actions are kept', async () => {
  using at = machine({ config: oom('sampleInterval: 1s\ntriggerExpression: "true"\n') })
  await at.pass(60_000)
  const ids = at.actions().map(({ id }) => Number(id))
  expect([ids.length, Math.max(...ids) - Math.min(...ids)]).toEqual([50, 49])
})

test('an expression that fails is reported once, and nothing is killed', async () => {
  using at = machine({ config: oom('triggerExpression: "qos_memory_current[9] > 1.0"\n') })
  await at.pass(5_000)
  expect([at.messages(), at.calls]).toEqual([['expression of OOMConfig failed'], []])
})

test('with control groups of version 1 the handler reports once that it is off', async () => {
  using at = machine({ version: 1 })
  await at.pass(5_000)
  expect([at.messages(), at.calls]).toEqual([['out-of-memory handler is off'], []])
})

test('an OOMConfig is accepted with a warning in a container node, and not refused on a machine', () => {
  const config = ConfigContainer.parse(oom('sampleInterval: 1s\n'))
  expect(config.validate('container').warnings.map(({ message }) => message)).toEqual([
    "has no effect in a container node: its memory is its host's to free",
  ])
  expect(config.validate('metal')).toEqual({ errors: [], warnings: [] })
})
