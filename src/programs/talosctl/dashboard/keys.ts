/** Keys of a terminal and what they do to the view: a function of both. */
import { type Choice, type Tab, tabs, type View } from './state.ts'

/** A key by name: a character, or one of those below. */
export type Key = string

const sequences: Record<string, Key> = {
  '\u001b[A': 'up',
  '\u001b[B': 'down',
  '\u001b[C': 'right',
  '\u001b[D': 'left',
  '\u001bOA': 'up',
  '\u001bOB': 'down',
  '\u001bOC': 'right',
  '\u001bOD': 'left',
  '\u001b[5~': 'page up',
  '\u001b[6~': 'page down',
  '\u001b[H': 'home',
  '\u001b[F': 'end',
  '\u001b[1~': 'home',
  '\u001b[4~': 'end',
  '\u001bOP': 'f1',
  '\u001bOQ': 'f2',
  '\u001bOR': 'f3',
  '\u001bOS': 'f4',
  '\u001b[11~': 'f1',
  '\u001b[12~': 'f2',
  '\u001b[13~': 'f3',
  '\u001b[14~': 'f4',
  '\u001b[[A': 'f1',
  '\u001b[[B': 'f2',
  '\u001b[[C': 'f3',
  '\u001b[[D': 'f4',
  '\u001b[[E': 'f5',
  '\u001b[15~': 'f5',
  '\u001b[17~': 'f6',
  '\u001b[Z': 'back-tab',
  '\t': 'tab',
  '\u0003': 'quit',
  q: 'quit',
}

/** The keys in what a terminal sent. */
export function keysOf(text: string): Key[] {
  const keys: Key[] = []
  let rest = text
  while (rest !== '') {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: keys that are no characters begin with one
    const sequence = /^\u001b(\[\[[A-E]|\[[0-9;]*[A-Za-z~]|O[A-Z])/.exec(rest)?.[0] ?? String.fromCodePoint(rest.codePointAt(0) ?? 0)
    rest = rest.slice(sequence.length)
    keys.push(sequences[sequence] ?? sequence)
  }
  return keys
}

const page = 10

/** The view after a key; `nodes` is how many nodes there are. */
export function press(view: View, key: Key, nodes: number): View {
  if (view.help) return { ...view, help: false }
  const number = /^f?([1-6])$/.exec(key)?.[1]
  if (number) return turned(view, tabs[Number(number) - 1] ?? 'Summary')
  if (key === '?') return { ...view, help: true }
  if (key === 'tab' || key === 'back-tab') {
    const at = tabs.indexOf(view.tab) + (key === 'tab' ? 1 : tabs.length - 1)
    return turned(view, tabs[at % tabs.length] ?? 'Summary')
  }
  if (key === 'left' || key === 'h') return moved(view, view.node + nodes - 1, nodes)
  if (key === 'right' || key === 'l') return moved(view, view.node + 1, nodes)
  const step = { up: -1, k: -1, down: 1, j: 1 }[key]
  if (step && view.tab === 'Logs') return { ...view, logs: chosen(view.logs, step), log: [], scroll: 0 }
  if (step && view.tab === 'Resources') return { ...view, types: chosen(view.types, step), table: [], scroll: 0 }
  const scroll = step ?? { 'page up': -page, 'page down': page }[key]
  if (scroll) return { ...view, scroll: Math.max(0, view.scroll + (fromTheEnd(view.tab) ? -scroll : scroll)) }
  if (key === 'home' || key === 'end') return { ...view, scroll: 0 }
  return view
}

/** Whether the main part of a screen shows the end of what there is. */
function fromTheEnd(tab: Tab): boolean {
  return tab === 'Summary' || tab === 'Logs' || tab === 'Events'
}

function turned(view: View, tab: Tab): View {
  return { ...view, tab, scroll: 0 }
}

function moved(view: View, node: number, nodes: number): View {
  return { ...view, node: node % Math.max(1, nodes), log: [], table: [], scroll: 0 }
}

function chosen({ items, at }: Choice, step: number): Choice {
  return { items, at: Math.min(Math.max(0, items.length - 1), Math.max(0, at + step)) }
}
