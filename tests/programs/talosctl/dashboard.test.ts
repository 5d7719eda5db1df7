import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { Events } from '../../../src/os/runtime/events.ts'
import { bar, bare, fit, graph, harmless, line, right } from '../../../src/programs/talosctl/dashboard/cells.ts'
import { timeOf } from '../../../src/programs/talosctl/dashboard/gather.ts'
import { keysOf, press } from '../../../src/programs/talosctl/dashboard/keys.ts'
import { screen } from '../../../src/programs/talosctl/dashboard/screen.ts'
import { firstView, type NodeState, newNode, tabs, type View } from '../../../src/programs/talosctl/dashboard/state.ts'
import { changes } from '../../../src/programs/talosctl/dashboard/terminal.ts'
import { anyText } from '../../support/any-text.ts'
import { talosctl } from './peer.ts'

const now = new Date('2026-11-21T12:00:00Z')

function example(): NodeState[] {
  const one: NodeState = {
    ...newNode('10.5.0.2'),
    hostname: 'demo-controlplane-1',
    version: 'v1.13.0',
    type: 'controlplane',
    stage: 'running',
    ready: false,
    unmet: ['staticPods: kube-system/kube-apiserver not ready'],
    addresses: ['10.5.0.2', '10.244.0.1'],
    paths: [
      ['eth0', '10.5.0.2/24'],
      ['default', 'by 10.5.0.1 on eth0, metric 1024'],
      ['names', '1.1.1.1 8.8.8.8'],
      ['time', 'time.cloudflare.com'],
    ],
    managed: '192.0.2.9 not heard',
    reasons: [
      'gateway 10.5.0.1 on eth0: it does not answer: check the cable, the VLAN, the address and the route of this machine',
      'name server 1.1.1.1: it does not answer: connect ENETUNREACH',
    ],
    kubernetes: 'v1.36.3',
    members: 3,
    uptime: 3 * 3600 + 7 * 60,
    processors: 2,
    load: [1.5, 0.75, 0.1],
    cpu: Array.from({ length: 100 }, (_, index) => 50 + 45 * Math.sin(index / 5)),
    memory: Array.from({ length: 100 }, (_, index) => index),
    memoryTotal: 8e9,
    memoryUsed: 6.1e9,
    services: [
      { id: 'apid', state: 'Running', healthy: true },
      { id: 'etcd', state: 'Preparing' },
      { id: 'kubelet', state: 'Running', healthy: false },
    ],
    processes: [
      {
        pid: 812,
        name: 'kube-apiserver --advertise-address=10.5.0.2 --allow-privileged',
        state: 'S',
        threads: 14,
        cpu: 61.25,
        memory: 286e6,
      },
      { pid: 1, name: '/sbin/init', state: 'R', threads: 9, cpu: 0.5, memory: 61e6 },
    ],
    network: [
      { name: 'eth0', inward: 12_345, outward: 987_654 },
      { name: 'lo', inward: 0, outward: 0 },
    ],
    disks: [{ name: 'vda', inward: 4096, outward: 0 }],
    kernelLog: [
      'kern: info: [2026-11-21T11:59:58Z]: eth0: link up',
      'kern: warning: [2026-11-21T11:59:59Z]: \u001b[31mout\u001b[0m of\tcoffee',
    ],
    events: ['11:59:57 apid: Running: Started', '11:59:58 boot: START'],
  }
  const two: NodeState = { ...newNode('10.5.0.3'), error: 'connect to 10.5.0.3:50000: timed out' }
  return [one, two]
}

const view = (change: Partial<View> = {}): View => ({
  ...firstView,
  logs: { items: ['apid', 'audit', 'containerd', 'machined'], at: 1 },
  log: ['first line', 'second line'],
  types: { items: ['Addresses', 'Hostnames'], at: 0 },
  table: ['ID          ADDRESS', 'eth0/v4     10.5.0.2/24'],
  ...change,
})

/** Screens are kept beside this file; `ICHOR_SNAPSHOTS=write bun test …` writes them again. */
function snapshot(name: string, lines: readonly string[]): void {
  const path = join(import.meta.dir, 'screens', `${name}.txt`)
  const text = `${lines.map((one) => bare(one).trimEnd()).join('\n')}\n`
  if (process.env.ICHOR_SNAPSHOTS === 'write') {
    mkdirSync(join(import.meta.dir, 'screens'), { recursive: true })
    writeFileSync(path, text)
  }
  expect(text).toBe(readFileSync(path, 'utf8'))
}

describe('at 80 by 24 the screen is', () => {
  test.each([...tabs])('%s', (tab) => {
    snapshot(tab.toLowerCase(), screen(example(), view({ tab }), { columns: 80, rows: 24 }, now))
  })
  test('help', () => snapshot('help', screen(example(), view({ help: true }), { columns: 80, rows: 24 }, now)))
  test('a node that is away', () => snapshot('away', screen(example(), view({ node: 1 }), { columns: 80, rows: 24 }, now)))
})

test('every screen fills a terminal of any size exactly, whatever nodes say', () => {
  const text = fc.oneof(fc.string(), anyText(), fc.constantFrom('日本語', '\u001b[2J', 'a\nb', '\t'))
  const size = fc.record({ columns: fc.integer({ min: 1, max: 200 }), rows: fc.integer({ min: 1, max: 80 }) })
  fc.assert(
    fc.property(
      size,
      fc.constantFrom(...tabs),
      fc.array(text),
      fc.integer({ min: 0, max: 50 }),
      fc.nat(1),
      (terminal, tab, lines, scroll, node) => {
        const nodes = example()
        Object.assign(nodes[0]!, { kernelLog: lines, events: lines, hostname: lines[0] ?? '', unmet: lines, reasons: lines })
        const shown = screen(nodes, view({ tab, node, scroll, log: lines, table: lines }), terminal, now)
        expect(shown).toHaveLength(terminal.rows)
        for (const one of shown) expect(Bun.stringWidth(bare(one))).toBe(terminal.columns)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
        for (const one of shown) expect(bare(one)).not.toMatch(/[\u0000-\u001f]/)
      },
    ),
  )
})

test('cells: cut with a mark, padded, and never wider than they should be', () => {
  expect(fit('abcdef', 4)).toBe('abc…')
  expect(fit('ab', 4)).toBe('ab  ')
  expect(fit('日本語', 4)).toBe('日… ')
  expect(right('12', 5)).toBe('   12')
  expect(harmless('a\u001b[31mb\u001b[2Jc\nd')).toBe('abcd')
  expect(bare(line([['ab', 'red'], ['cdef']], 5))).toBe(`${'abcd…'.slice(0, 2)}cd…`)
  expect(bar(50, 4)).toBe('██░░')
  expect(graph([0, 50, 100], 4, 2)).toEqual(['   █', '  ██'])
})

test('keys of terminals are known by name, and what they do', () => {
  expect(keysOf('\u001b[A\u001bOBx\u001b[5~\u001b[15~q\u0003')).toEqual(['up', 'down', 'x', 'page up', 'f5', 'quit', 'quit'])
  const after = (keys: string, from = view()) => keysOf(keys).reduce((now, key) => press(now, key, 2), from)
  expect(after('2').tab).toBe('Monitor')
  expect(after('\u001bOS').tab).toBe('Logs')
  expect(after('\u001b[Z').tab).toBe('Events')
  expect(after('\t\t').tab).toBe('Network')
  expect(after('l').node).toBe(1)
  expect(after('ll').node).toBe(0)
  expect(after('h').node).toBe(1)
  expect(after('4jj')).toMatchObject({ tab: 'Logs', logs: { at: 3 }, log: [] })
  expect(after('4jjjjjj').logs.at).toBe(3)
  expect(after('1kk').scroll).toBe(2)
  expect(after('2jj').scroll).toBe(2)
  expect(after('2jjk\u001b[H').scroll).toBe(0)
  expect(after('?')).toMatchObject({ help: true })
  expect(after('?x')).toMatchObject({ help: false, tab: 'Summary' })
})

test('the time of an event is in its id', () => {
  const id = new Events(() => now)
  id.publish('machine.SequenceEvent', {})
  expect(timeOf(id.last('machine.SequenceEvent')!.id)).toBe('12:00:00')
})

test('only lines that differ are written', () => {
  expect(changes(['a', 'b'], ['a', 'b'])).toBe('')
  expect(changes(['a', 'b'], ['a', 'c'])).toBe('\u001b[?2026h\u001b[2;1Hc\u001b[?2026l')
  expect(changes(['a', 'b'], ['a'])).toBe('\u001b[?2026h\u001b[2;1H\u001b[K\u001b[?2026l')
})

test('without a terminal an error is reported', async () => {
  const { code, stderr } = await talosctl([], ['dashboard'])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^the dashboard needs a terminal: .*\n$/)])
})
