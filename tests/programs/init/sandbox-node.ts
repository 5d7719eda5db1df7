/** The whole of init in a test, over a kernel of the test's own. */
import { afterAll, beforeAll } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { background } from '../../../src/cosi/background.ts'
import { type Clock, makeClock } from '../../../src/cosi/clock.ts'
import { createLogger, formatEntry, type LogEntry } from '../../../src/cosi/log.ts'
import { SystemError } from '../../../src/linux/system-error.ts'
import { type Assembled, assemble } from '../../../src/programs/init/assemble.ts'
import { start } from '../../../src/programs/init/start.ts'
import { pause } from '../../../src/timing/pause.ts'
import { withRetries } from '../../../src/timing/retry.ts'
import { config } from '../../os/config/machine.ts'
import { cheapKeys } from '../../support/cheap-keys.ts'
import { shortenDelays } from '../../support/short-delays.ts'
import { machineModules } from './sandbox-devices.ts'
import type { Hardware } from './sandbox-hardware.ts'
import { connected, sandboxKernel } from './sandbox-kernel.ts'
import { sandboxPrograms } from './sandbox-programs.ts'
import { SandboxSockets } from './sandbox-sockets.ts'

/** What nobody handled since the last look. */
export const unexpected: unknown[] = []
const note = (error: unknown) => unexpected.push(error)
let folder = ''
/** Nothing outside this process is spoken to: neither a service of discovery nor ports of the host. */
const alone = `
machine: { features: { hostDNS: { enabled: false }, kubePrism: { enabled: false } } }
cluster: { discovery: { enabled: false } }`
export const configuration = config('controlplane', alone)
export const changedConfiguration = config(
  'controlplane',
  alone.replace(
    'features',
    'sysctls: { vm.swappiness: "1" }, files: [{ path: /var/one, op: create, content: x }], registries: { mirrors: { one: { endpoints: [http://127.0.0.1] } } }, features',
  ),
)

/** The preamble of each file of tests with such nodes: a folder until its end, and a record of unhandled rejections. */
export function useSandbox(): void {
  shortenDelays()
  cheapKeys()
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ichor-init-'))
    process.on('unhandledRejection', note)
    process.on('uncaughtException', note)
  })
  afterAll(() => {
    process.off('unhandledRejection', note)
    process.off('uncaughtException', note)
    rmSync(folder, { recursive: true })
  })
}

/** A node that was started. */
export interface SandboxNode {
  /** Where its files are. */
  readonly root: string
  readonly machine: Assembled
  readonly entries: LogEntry[]
  readonly ends: string[]
  /** How often each call was made. */
  readonly calls: Map<string, number>
  /** The calls that failed. */
  readonly fired: string[]
  readonly sockets?: SandboxSockets | undefined
  stop(): Promise<void>
}

/** A node with sockets. */
export interface ServingNode extends SandboxNode {
  readonly sockets: SandboxSockets
}

/** Pauses between tries are what a test need not wait for. */
const clock = hurried(5)
/** A service with a health check needs some time to answer. */
const servingClock = hurried(300)
export const never = new AbortController().signal

/** A clock whose pauses are this short (milliseconds), or a fortieth where that is more: regular checks stay rare. */
function hurried(short: number): Clock {
  return makeClock({ sleep: (ms, signal) => pause(Math.min(ms, Math.max(short, ms / 40)), signal ?? never) })
}

/** Which use of which call fails. */
export type Fails = (call: string, use: number) => boolean

/** What a node of a test is made of. */
interface NodeOptions {
  readonly fails?: Fails | undefined
  /** Puts files where the node finds them. */
  readonly disk?: ((root: string) => void) | undefined
  /** A machine of its own, and not a container. */
  readonly hardware?: Hardware
  /** Which use of which socket fails; without it the node has no network, and no API. */
  readonly sockets?: Fails | undefined
}

const noFault: Fails = () => false
const usual = ['proc/self', 'system/state', 'system/run/machined', 'etc', 'run', 'var/lib', 'sys/class/net', 'usr/lib', 'usr/share/ichor']

/** What the kernel counts, which every node reads. */
const counters = { stat: 'cpu 1 0 1 1\ncpu0 1 0 1 1\n', meminfo: 'MemTotal:        4000000 kB\nMemFree:         1000000 kB\n' }

/** How the kernel fails calls: a disk breaks, a mount is in use, anything else was interrupted. */
const errnoOf = (call: string): number => ({ block: 5, mount: 16, spawn: 11 })[call.split(/[. ]/)[0] ?? ''] ?? 4

let nodes = 0
/** A container node that starts; `fails` selects which use of which call fails, `disk` puts files there beforehand. */
export const startNode = (fails?: Fails, disk?: (root: string) => void): Promise<SandboxNode> =>
  begin({
    fails,
    disk(root) {
      writeFileSync(join(root, 'proc/cmdline'), '')
      writeFileSync(join(root, 'system/state/config.yaml'), configuration)
      disk?.(root)
    },
  })

/** A container node with sockets that starts; `sockets` selects which use of which socket fails. */
export const startServingNode = (sockets: Fails): Promise<ServingNode> =>
  begin({
    sockets,
    disk(root) {
      writeFileSync(join(root, 'proc/cmdline'), '')
      writeFileSync(join(root, 'system/state/config.yaml'), configuration)
    },
  }) as Promise<ServingNode>

/** A node that starts. */
export async function begin({ fails = noFault, disk, hardware, sockets: failing }: NodeOptions): Promise<SandboxNode> {
  const root = join(folder, String(nodes++))
  for (const path of usual) mkdirSync(join(root, path), { recursive: true })
  for (const [name, text] of Object.entries(counters)) writeFileSync(join(root, 'proc', name), text)
  // Without its list, the service of the images would fail and start again without end.
  writeFileSync(join(root, 'usr/share/ichor/images.json'), '{"images":[],"blobs":[]}')
  await hardware?.start(root)
  disk?.(root)
  const calls = new Map<string, number>()
  const fired: string[] = []
  const entries: LogEntry[] = []
  const ends: string[] = []
  const fault = (call: string) => {
    const use = (calls.get(call) ?? 0) + 1
    calls.set(call, use)
    if (!fails(call, use)) return undefined
    fired.push(call)
    return new SystemError(call, errnoOf(call), 'an injected fault')
  }
  const sockets = failing && (await SandboxSockets.open(root, failing))
  const kernel = sandboxKernel(root, fault, hardware && machineModules(root, hardware), sockets && connected)
  const make = () =>
    assemble({
      kernel,
      clock: sockets ? servingClock : clock,
      firstPause: 2,
      spawn: sandboxPrograms(root, fault, hardware),
      oomFloor: 0,
      logger: () => createLogger((entry) => entries.push(entry)),
      end: (ending) => ends.push(ending),
    })
  const machine = await withRetries('assemble', make, () => {}, 1)
  await sockets?.serve(machine)
  machine.runtime.start()
  background(start(machine, { delay: 1 }), { error: (message) => note(message) })
  const stop = async () => {
    machine.runtime.stop()
    await machine.supervisor.stop(...machine.supervisor.list().map(({ id }) => id))
    await sockets?.close()
  }
  return { root, machine, entries, ends, calls, fired, sockets, stop }
}

/** What a node is: its resources, and the sequence it is at. Events and times differ from start to start. */
export function shapeOf({ machine }: SandboxNode): string[] {
  const resources = machine.store.all().map(({ metadata: { type, namespace, id } }) => `${namespace}/${type}/${id}`)
  return [
    ...resources.filter((name) => !/Affiliate|APICalls|BootPhases|Services.v1alpha1/.test(name)).sort(),
    `sequence ${machine.sequencer.running}`,
  ]
}

const failing = ({ machine }: SandboxNode) =>
  machine.runtime
    .controllers()
    .flatMap(({ controller, state }) => (state.lastError ? [`${controller.name}: ${state.lastError.message}`] : []))

/** What a node has logged as wrong. */
export const problems = ({ entries }: Pick<SandboxNode, 'entries'>): string[] =>
  entries.filter(({ level }) => level === 'warn' || level === 'error').map(formatEntry)

/** Waits until the node has the expected state; throws what is missing on timeout. */
export async function becomes(here: SandboxNode, shape: readonly string[]): Promise<void> {
  const end = clock.deadline(40_000)
  for (;;) {
    await here.machine.runtime.settled()
    if (Bun.deepEquals(shapeOf(here), shape) && failing(here).length === 0) return
    if (end.over || here.ends.length > 0) {
      const now = shapeOf(here)
      const [lacks, more] = [shape.filter((name) => !now.includes(name)), now.filter((name) => !shape.includes(name))]
      const few = (names: string[]) => [...names.slice(0, 10), `of ${names.length}`]
      const state = { failing: failing(here), lacks: few(lacks), more: few(more), fired: here.fired, problems: problems(here) }
      throw new Error(`the node does not come up: ${JSON.stringify(state, null, 1)}`)
    }
    await pause(20, never)
  }
}

/** The shape of a node once nothing moves any more: some looks in a row are alike. */
export async function settledShape(here: SandboxNode): Promise<string[]> {
  for (let before: string[] = [], quiet = 0; quiet < 10; before = shapeOf(here)) {
    await here.machine.runtime.settled()
    await pause(20, never)
    quiet = Bun.deepEquals(shapeOf(here), before) ? quiet + 1 : 0
  }
  return shapeOf(here)
}
