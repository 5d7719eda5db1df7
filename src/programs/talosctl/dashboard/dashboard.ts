/** The dashboard: nodes are watched, keys change the view, and the screen is drawn whenever either has changed. */

import { background } from '../../../cosi/background.ts'
import { silent } from '../../../cosi/log.ts'
import { pause } from '../../../timing/pause.ts'
import type { Cluster } from '../cluster.ts'
import { describe } from '../failure.ts'
import { table } from '../output/table.ts'
import { cellsOf, type Definition, definitions, specOf } from '../resource/definition.ts'
import { harmless } from './cells.ts'
import { NodeWatch } from './gather.ts'
import { keysOf, press } from './keys.ts'
import { screen } from './screen.ts'
import { firstView, newNode, type View } from './state.ts'
import type { Terminal } from './terminal.ts'

const frame = 50
/** Pauses are so many times as long as a look took: a machine under strain has better things to do than to be looked at. */
const rest = 9
const seldom = 5
const keptLines = 2000

/** What the dashboard runs on. */
export interface DashboardOptions {
  readonly cluster: Cluster
  readonly terminal: Terminal
  readonly interval: number
  readonly signal: AbortSignal
  now(): Date
}

/** Shows nodes until the user quits or the signal fires. */
export async function showDashboard({ cluster, terminal, interval, signal: outer, now }: DashboardOptions): Promise<void> {
  const named = await cluster.nodes()
  const names = named.length > 0 ? named : [await cluster.peer()]
  const over = new AbortController()
  const signal = AbortSignal.any([outer, over.signal])
  const nodes = names.map((name) => newNode(name))
  const watches = nodes.map((node, index) => new NodeWatch(cluster, node, named[index]))
  let view = firstView
  let hurry = new AbortController()
  let due: ReturnType<typeof setTimeout> | undefined
  const draw = () => {
    due ??= setTimeout(() => {
      due = undefined
      if (!signal.aborted) terminal.show(screen(nodes, view, terminal.size(), now()))
    }, frame)
  }
  const side = new SideShow(cluster, signal, (change) => {
    view = { ...view, ...change }
    draw()
  })
  terminal.onResize(draw)
  terminal.onKeys((text) => {
    for (const key of keysOf(text)) {
      if (key === 'quit' && !view.help) over.abort()
      else view = press(view, key, nodes.length)
    }
    if (view.tab === 'Monitor' && nodes[view.node]?.processes.length === 0) hurry.abort()
    side.turn(view, named[view.node])
    draw()
  })
  terminal.show(screen(nodes, view, terminal.size(), now()))
  const followed = watches.map((watch) => watch.follow(signal, () => view.tab === 'Network'))
  const looks = watches.map(async (watch) => {
    for (let round = 0; !signal.aborted; round++) {
      const begun = performance.now()
      const look = watch.look(Math.max(2000, interval), signal, { processes: view.tab === 'Monitor' })
      await Promise.all([look, round % seldom === 0 ? watch.identify(5000, signal) : undefined])
      side.turn(view, named[view.node], true)
      draw()
      const delay = Math.max(round === 0 ? Math.min(1000, interval) : interval, rest * (performance.now() - begun))
      await pause(delay, AbortSignal.any([signal, hurry.signal]))
      if (hurry.signal.aborted) hurry = new AbortController()
    }
  })
  await Promise.all([...followed, ...looks])
  clearTimeout(due)
}

/** Data of a single screen, requested only while the screen is shown: a followed log, a table of resources. */
class SideShow {
  #key = ''
  #stop = new AbortController()
  #types = new Map<string, readonly Definition[]>()
  #busy = false

  constructor(
    readonly cluster: Cluster,
    readonly signal: AbortSignal,
    readonly update: (change: Partial<View>) => void,
  ) {}

  /** Loads what the view needs; `tick` reloads a table. */
  turn(view: View, node: string | undefined, tick = false): void {
    const chosen = view.tab === 'Logs' ? view.logs : view.tab === 'Resources' ? view.types : undefined
    const item = chosen?.items[chosen.at] ?? ''
    const key = chosen ? `${view.tab} ${view.node} ${item}` : ''
    if (key === this.#key) {
      if (tick && view.tab === 'Resources' && item && !this.#busy) background(this.#table(item, node, this.#stop.signal), silent)
      return
    }
    this.#key = key
    this.#stop.abort()
    this.#stop = new AbortController()
    const signal = AbortSignal.any([this.signal, this.#stop.signal])
    if (view.tab === 'Logs') background(item ? this.#log(item, node, signal) : this.#logs(view, node, signal), silent)
    if (view.tab === 'Resources') background(item ? this.#table(item, node, signal) : this.#list(view, node, signal), silent)
  }

  async #logs(view: View, node: string | undefined, signal: AbortSignal): Promise<void> {
    await this.#reportingFailures(signal, 'log', async () => {
      const { messages } = await this.cluster.unary('machine.MachineService/LogsContainers', {}, { node, timeout: 5000, signal })
      const items = messages.flatMap(({ ids }) => ids)
      this.update({ logs: { items, at: Math.min(view.logs.at, Math.max(0, items.length - 1)) } })
    })
  }

  async #log(id: string, node: string | undefined, signal: AbortSignal): Promise<void> {
    await this.#reportingFailures(signal, 'log', async () => {
      const lines: string[] = []
      const decoder = new TextDecoder()
      let rest = ''
      for await (const { bytes } of this.cluster.stream(
        'machine.MachineService/Logs',
        { id, follow: true, tailLines: 500 },
        { node, signal },
      )) {
        const whole = (rest + decoder.decode(bytes, { stream: true })).split('\n')
        rest = whole.pop() ?? ''
        lines.push(...whole.map(harmless))
        lines.splice(0, Math.max(0, lines.length - keptLines))
        if (!signal.aborted) this.update({ log: [...lines] })
      }
    })
  }

  async #list(view: View, node: string | undefined, signal: AbortSignal): Promise<void> {
    await this.#reportingFailures(signal, 'table', async () => {
      const items = (await this.#definitions(node)).map(({ displayType, id }) => displayType || id).sort()
      this.update({ types: { items, at: Math.min(view.types.at, Math.max(0, items.length - 1)) } })
    })
  }

  async #table(name: string, node: string | undefined, signal: AbortSignal): Promise<void> {
    this.#busy = true
    await this.#reportingFailures(signal, 'table', async () => {
      const type = (await this.#definitions(node)).find(({ displayType, id }) => (displayType || id) === name)
      if (!type) return
      const cells = cellsOf(type)
      const rows: string[][] = []
      const request = { namespace: type.defaultNamespace, type: type.type }
      for await (const { resource } of this.cluster.stream('cosi.resource.State/List', request, { node, timeout: 5000, signal }))
        if (resource) rows.push([resource.metadata?.id ?? '', ...cells(specOf(resource))].map((cell) => harmless(cell).slice(0, 60)))
      const titles = ['ID', ...type.columns.map((column) => column.name.toUpperCase())]
      if (!signal.aborted)
        this.update({
          table: table([titles, ...rows], 2)
            .trimEnd()
            .split('\n'),
        })
    })
    this.#busy = false
  }

  async #definitions(node = ''): Promise<readonly Definition[]> {
    const known = this.#types.get(node) ?? (await definitions(this.cluster, node || undefined))
    this.#types.set(node, known)
    return known
  }

  /** What fails is shown where the answer would be. */
  async #reportingFailures(signal: AbortSignal, where: 'log' | 'table', act: () => Promise<void>): Promise<void> {
    try {
      await act()
    } catch (error) {
      if (!signal.aborted) this.update({ [where]: describe(error).split('\n').map(harmless) })
    }
  }
}
