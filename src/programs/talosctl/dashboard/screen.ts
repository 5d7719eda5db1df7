/** The dashboard's screen as lines of text: a function of what is known, what is looked at, and the terminal's size. */
import { humanSize } from '../output/units.ts'
import { bar, fit, graph, line, type Piece, right, type Style, wrapped } from './cells.ts'
import type { Choice, NodeState, RateLine, View } from './state.ts'
import { tabs } from './state.ts'

/** A terminal's size. */
export interface Size {
  readonly columns: number
  readonly rows: number
}

const smallest: Size = { columns: 40, rows: 10 }

/** The lines of the screen, exactly as many and as wide as the terminal. */
export function screen(nodes: readonly NodeState[], view: View, size: Size, now: Date): string[] {
  const { columns, rows } = size
  if (columns < smallest.columns || rows < smallest.rows) {
    const text = `the terminal is too small: ${smallest.columns}×${smallest.rows} at least`
    return filled([fit(text, columns)], columns, rows)
  }
  const node = nodes[view.node]
  const head = header(node, columns, now)
  const foot = footer(nodes, view, columns)
  const room = { columns, rows: rows - head.length - foot.length }
  const body = view.help ? help(room) : node ? bodies[view.tab](node, view, room) : []
  return [...head, ...filled(body, columns, room.rows), ...foot]
}

function filled(lines: readonly string[], columns: number, rows: number): string[] {
  return Array.from({ length: rows }, (_, row) => lines[row] ?? ' '.repeat(columns))
}

function header(node: NodeState | undefined, columns: number, now: Date): string[] {
  if (!node) return [line([['no node', 'bold']], columns)]
  const clock = `${now.toISOString().slice(11, 19)} UTC`
  const name = node.hostname && node.hostname !== node.name ? `${node.hostname} (${node.name})` : node.name
  const title: Piece[] = [
    [` ${name} `, 'bold'],
    [`${node.version}${node.uptime > 0 ? ` · up ${duration(node.uptime)}` : ''}${node.processors ? ` · ${node.processors} CPU` : ''}`],
    [node.memoryTotal ? ` · ${humanSize(node.memoryTotal)}` : ''],
  ]
  const first = line(title, columns - clock.length - 1) + right(clock, clock.length + 1)
  if (node.error) return [first, line([[` ${node.error}`, 'red']], columns)]
  const [cpu = 0] = node.cpu.slice(-1)
  const [memory = 0] = node.memory.slice(-1)
  const width = Math.max(4, Math.min(20, Math.floor((columns - 46) / 2)))
  const second: Piece[] = [
    [' CPU '],
    [bar(cpu, width), level(cpu)],
    [right(`${cpu.toFixed(0)}%`, 5)],
    ['  MEM '],
    [bar(memory, width), level(memory)],
    [right(`${memory.toFixed(0)}%`, 5)],
    [`  load ${node.load.map((value) => value.toFixed(2)).join(' ')}`],
  ]
  return [first, line(second, columns)]
}

function footer(nodes: readonly NodeState[], view: View, columns: number): string[] {
  const names = tabs.flatMap((tab, index): Piece[] => [
    [` ${index + 1} `, 'dim'],
    [tab, tab === view.tab ? 'reverse' : 'plain'],
  ])
  const all = nodes.map(
    (node, index): Piece => [` ${node.hostname || node.name} `, index === view.node ? 'reverse' : node.error ? 'red' : 'plain'],
  )
  return [
    line([...names, ['   ? help  q quit', 'dim']], columns),
    line([[' nodes', 'dim'], ...around(all, view.node, columns - 6)], columns),
  ]
}

/** The pieces around one of them that have room. */
function around(pieces: readonly Piece[], at: number, columns: number): Piece[] {
  let first = 0
  const width = (from: number) => pieces.slice(from, at + 1).reduce((sum, [text]) => sum + Bun.stringWidth(text), 0)
  while (first < at && width(first) > columns - 2) first++
  return first > 0 ? [['‹ ', 'dim'], ...pieces.slice(first)] : [...pieces]
}

type Body = (node: NodeState, view: View, room: Size) => string[]

const bodies: Record<View['tab'], Body> = {
  Summary(node, view, { columns, rows }) {
    const half = Math.floor(columns / 2)
    const facts: [string, string, Style?][] = [
      ['Type', node.type],
      ['Stage', node.stage, node.stage === 'running' ? 'green' : 'yellow'],
      ['Ready', node.ready ? 'yes' : 'no', node.ready ? 'green' : 'red'],
      ['Addresses', node.addresses.join(' ')],
      ['Kubernetes', node.kubernetes],
      ['Members', node.members ? String(node.members) : ''],
      ...(node.managed === undefined ? [] : [['SideroLink', node.managed] as [string, string]]),
      ...node.unmet.map((text): [string, string, Style] => ['Waits for', text, 'yellow']),
    ]
    const left = facts.map(([name, value, style]) =>
      line(
        [
          [fit(` ${name}`, 12), 'dim'],
          [value || '-', style],
        ],
        half,
      ),
    )
    const list = serviceLines(node, columns - half)
    const top = Math.min(Math.max(left.length, list.length), Math.max(4, rows - 6))
    const both = filled(left, half, top).map((text, row) => text + (list[row] ?? ' '.repeat(columns - half)))
    const log = rows - top - 1
    return [...both, rule('kernel log', columns), ...tail(node.kernelLog, view.scroll, columns, log)]
  },
  Monitor(node, view, { columns, rows }) {
    const half = Math.floor((columns - 1) / 2)
    const height = Math.max(2, Math.min(6, Math.floor(rows / 4)))
    const cpu = graph(node.cpu, half, height)
    const memory = graph(node.memory, columns - half - 1, height)
    const graphs = cpu.map((text, row) => `${line([[text, 'cyan']], half)} ${line([[memory[row] ?? '', 'green']], columns - half - 1)}`)
    const titles = line(
      [
        [fit(' CPU', half + 1), 'dim'],
        [` memory ${humanSize(node.memoryUsed)} of ${humanSize(node.memoryTotal)}`, 'dim'],
      ],
      columns,
    )
    const disks = node.disks.slice(0, 2).map((disk) => rateLine(disk, 'read', 'written', columns))
    const used = 1 + height + disks.length + 2
    const title = line(
      [
        [
          fit(
            `${right('PID', 8)}  ${fit('NAME', Math.max(4, columns - 42))} S ${right('THREADS', 8)} ${right('CPU', 7)} ${right('MEMORY', 9)}`,
            columns,
          ),
          'dim',
        ],
      ],
      columns,
    )
    return [
      titles,
      ...graphs,
      ...disks,
      rule('processes', columns),
      title,
      ...window(
        node.processes.map((one) => processLine(one, columns)),
        view.scroll,
        rows - used,
      ),
    ]
  },
  Network(node, view, { columns, rows }) {
    const lines = [
      ...node.paths.map(([name, value]) => line([[fit(` ${name}`, 18), 'dim'], [value]], columns)),
      ...(node.reasons.length > 0 ? [rule('what is wrong', columns)] : []),
      ...node.reasons.flatMap((text) => wrapped(text, columns - 1).map((part) => line([[` ${part}`, 'yellow']], columns))),
      rule('links, bytes a second', columns),
      ...node.network.map((one) => rateLine(one, 'received', 'sent', columns)),
    ]
    return [rule('addresses and routes', columns), ...window(lines, view.scroll, rows - 1)]
  },
  Logs(_, view, room) {
    return choosing(view.logs, tail(view.log, view.scroll, room.columns - listWidth(view.logs) - 1, room.rows), room)
  },
  Resources(_, view, room) {
    const width = room.columns - listWidth(view.types) - 1
    return choosing(
      view.types,
      window(
        view.table.map((text) => fit(text, width)),
        view.scroll,
        room.rows,
      ),
      room,
    )
  },
  Events(node, view, { columns, rows }) {
    return tail(node.events, view.scroll, columns, rows)
  },
}

function serviceLines({ services }: NodeState, columns: number): string[] {
  return services.map(({ id, state, healthy }) => {
    const style: Style = healthy === false ? 'red' : state === 'Running' || state === 'Finished' ? 'green' : 'yellow'
    const health = healthy === undefined ? '' : healthy ? ' healthy' : ' unhealthy'
    return line([[fit(` ${id}`, 18)], [`${state}${health}`, style]], columns)
  })
}

function processLine({ pid, name, state, threads, cpu, memory }: NodeState['processes'][number], columns: number): string {
  const cells = `${right(String(pid), 8)}  ${fit(name, Math.max(4, columns - 42))} ${state} ${right(String(threads), 8)} ${right(`${cpu.toFixed(1)}%`, 7)} ${right(humanSize(memory), 9)}`
  return line([[cells, cpu > 50 ? 'yellow' : 'plain']], columns)
}

function rateLine({ name, inward, outward }: RateLine, from: string, to: string, columns: number): string {
  const rate = (bytes: number) => right(`${humanSize(Math.round(bytes))}/s`, 11)
  return line([[fit(` ${name}`, 18)], [`${rate(inward)} ${from} ${rate(outward)} ${to}`]], columns)
}

function listWidth({ items }: Choice): number {
  return Math.min(26, Math.max(10, ...items.map((item) => item.length + 1)))
}

/** A list at the left with the chosen item in sight, and something at the right. */
function choosing(choice: Choice, main: readonly string[], { columns, rows }: Size): string[] {
  const width = listWidth(choice)
  const first = Math.max(0, Math.min(choice.at - Math.floor(rows / 2), choice.items.length - rows))
  return Array.from({ length: rows }, (_, row) => {
    const item = choice.items[first + row]
    const list =
      item === undefined ? ' '.repeat(width) : line([[fit(` ${item}`, width), first + row === choice.at ? 'reverse' : 'plain']], width)
    return `${list}│${main[row] ?? ' '.repeat(columns - width - 1)}`
  })
}

function rule(title: string, columns: number): string {
  return line([[`─ ${title} ${'─'.repeat(Math.max(0, columns - title.length - 3))}`, 'dim']], columns)
}

/** The last lines that have room, or those before them. */
function tail(lines: readonly string[], scroll: number, columns: number, rows: number): string[] {
  const last = Math.max(Math.min(rows, lines.length), lines.length - scroll)
  return lines.slice(Math.max(0, last - rows), last).map((text) => fit(text, columns))
}

function window(lines: readonly string[], scroll: number, rows: number): string[] {
  const first = Math.min(scroll, Math.max(0, lines.length - rows))
  return lines.slice(first, first + Math.max(0, rows))
}

function level(percent: number): Style {
  return percent > 90 ? 'red' : percent > 70 ? 'yellow' : 'green'
}

/** Seconds as "3d 4h", "4h 5m" or "5m 6s". */
function duration(seconds: number): string {
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60]
  if (days > 0) return `${days}d ${hours}h`
  return hours > 0 ? `${hours}h ${minutes}m` : `${minutes}m ${Math.floor(seconds) % 60}s`
}

function help({ columns }: Size): string[] {
  const keys: [string, string][] = [
    ['1 … 6, F1 … F6, Tab', 'screens'],
    ['← →, h l', 'nodes'],
    ['↑ ↓, k j', 'scroll, or choose in the list at the left'],
    ['Page up, Page down', 'scroll by ten lines'],
    ['Home', 'back to the end of a log, or the beginning of a table'],
    ['q, Ctrl-C', 'quit'],
  ]
  return ['', ...keys.map(([key, what]) => line([[fit(`   ${key}`, 26), 'bold'], [what]], columns)), ''].map(
    (text) => text || ' '.repeat(columns),
  )
}
