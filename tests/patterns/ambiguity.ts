/**
 * How many ways a regular expression can match one text. Backtracking tries all of them before it fails, so a pattern with
 * exponentially many ways freezes its thread, and one with polynomially many is slow on long texts.
 *
 * The pattern becomes a position automaton (Glushkov). It is exponentially ambiguous when some state can come back to
 * itself by two paths over the same text, polynomially when over one text p → p, p → q and q → q with p ≠ q
 * (Weber and Seidl, "On the degree of ambiguity of finite automata").
 */

export type Ambiguity = 'none' | 'polynomial' | 'exponential'

type Node = { kind: 'set'; mask: bigint } | { kind: 'sequence' | 'choice'; items: Node[] } | Repeat | { kind: 'empty' }

interface Repeat {
  kind: 'repeat'
  item: Node
  least: number
  most: number
}

/** Repetitions up to this many positions are written out; longer ones count as unbounded, which only finds more. */
const writtenOut = 12

/** Characters that sets are compared by: ASCII, Latin-1, and a letter, a space and a line break from beyond. */
const alphabet = [...Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)), 'Ж', '\u2003', '\u2028']

const masks = new Map<string, bigint>()

/** The characters of the alphabet that an atom matches, by the engine's own judgement. */
function maskOf(atom: string, flags: string): bigint {
  const key = `${flags}/${atom}`
  const known = masks.get(key)
  if (known !== undefined) return known
  const one = new RegExp(`^(?:${atom})$`, flags)
  const mask = alphabet.reduce((bits, character, index) => (one.test(character) ? bits | (1n << BigInt(index)) : bits), 0n)
  masks.set(key, mask)
  return mask
}

class Parser {
  readonly inner: Node[] = []
  #at = 0

  constructor(
    private readonly source: string,
    private readonly flags: string,
  ) {}

  whole(): Node {
    const node = this.#choice()
    if (this.#at < this.source.length) throw new Error(`cannot parse /${this.source}/ at ${this.#at}`)
    return node
  }

  #choice(): Node {
    const items = [this.#sequence()]
    while (this.source[this.#at] === '|') {
      this.#at++
      items.push(this.#sequence())
    }
    return items.length === 1 ? items[0]! : { kind: 'choice', items }
  }

  #sequence(): Node {
    const items: Node[] = []
    while (this.#at < this.source.length && this.source[this.#at] !== '|' && this.source[this.#at] !== ')') items.push(this.#repeated())
    return { kind: 'sequence', items }
  }

  #repeated(): Node {
    const item = this.#atom()
    const [quantifier, body, exact, comma, upper] = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(this.source.slice(this.#at)) ?? []
    if (quantifier === undefined) return item
    this.#at += quantifier.length
    if (body === '*') return { kind: 'repeat', item, least: 0, most: Number.POSITIVE_INFINITY }
    if (body === '+') return { kind: 'repeat', item, least: 1, most: Number.POSITIVE_INFINITY }
    if (body === '?') return { kind: 'repeat', item, least: 0, most: 1 }
    const least = Number(exact)
    return { kind: 'repeat', item, least, most: comma === '' ? least : upper === '' ? Number.POSITIVE_INFINITY : Number(upper) }
  }

  #atom(): Node {
    const rest = this.source.slice(this.#at)
    const group = /^\((\?(?:[:=!]|<[=!]|<[^>]+>))?/.exec(rest)
    if (group) {
      this.#at += group[0].length
      const node = this.#choice()
      this.#at++
      if (!/^\?<?[=!]$/.test(group[1] ?? '')) return node
      this.inner.push(node)
      return { kind: 'empty' }
    }
    const [atom = ''] =
      /^(?:\[(?:[^\]\\]|\\.)*\]|\\(?:u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|c[A-Za-z]|k<[^>]*>|.)|[^\\])/su.exec(rest) ??
      []
    this.#at += atom.length
    if (atom === '^' || atom === '$' || atom === '\\b' || atom === '\\B') return { kind: 'empty' }
    if (/^\\(?:[1-9]|k<)/.test(atom)) return { kind: 'empty' } // one fixed text, wherever it is looked for
    return { kind: 'set', mask: maskOf(atom, this.flags.replace(/[gyd]/g, '')) }
  }
}

/** What of an automaton concerns one part of a pattern. */
interface Part {
  first: number[]
  last: number[]
  empty: boolean
  size: number
}

class Automaton {
  readonly masks: bigint[] = []
  /** How many edges lead from one position to another. */
  readonly next: Map<number, number>[] = []

  add(node: Node): Part {
    if (node.kind === 'empty') return { first: [], last: [], empty: true, size: 0 }
    if (node.kind === 'set') {
      const at = this.masks.push(node.mask) - 1
      this.next.push(new Map())
      return { first: [at], last: [at], empty: false, size: 1 }
    }
    if (node.kind === 'choice') {
      const parts = node.items.map((item) => this.add(item))
      return {
        first: parts.flatMap(({ first }) => first),
        last: parts.flatMap(({ last }) => last),
        empty: parts.some(({ empty }) => empty),
        size: parts.reduce((sum, { size }) => sum + size, 0),
      }
    }
    if (node.kind === 'repeat') return this.#repeat(node)
    return node.items.reduce<Part>((left, item) => this.#join(left, this.add(item)), { ...nothing })
  }

  #join(left: Part, right: Part): Part {
    this.#link(left.last, right.first)
    return {
      first: left.empty ? [...left.first, ...right.first] : left.first,
      last: right.empty ? [...right.last, ...left.last] : right.last,
      empty: left.empty && right.empty,
      size: left.size + right.size,
    }
  }

  #repeat({ item, least, most }: Repeat): Part {
    if (most === 0) return { ...nothing }
    const part = this.add(item)
    if (most === 1) return { ...part, empty: part.empty || least === 0 }
    if (most === Number.POSITIVE_INFINITY || part.size * most > writtenOut) {
      this.#link(part.last, part.first)
      return { ...part, empty: part.empty || least === 0 }
    }
    let whole: Part = least === 0 ? { ...part, empty: true } : part
    for (let times = 1; times < most; times++) {
      const another = this.add(item)
      whole = this.#join(whole, times < least ? another : { ...another, empty: true })
    }
    return whole
  }

  #link(from: readonly number[], to: readonly number[]): void {
    for (const a of from) for (const b of to) this.next[a]!.set(b, (this.next[a]!.get(b) ?? 0) + 1)
  }
}

const nothing: Part = { first: [], last: [], empty: true, size: 0 }

/** A text that makes a pattern repeat a part of itself: what leads there, and what is repeated. */
export interface Pump {
  prefix: string
  part: string
}

/** The automata of a pattern and of its lookarounds. */
function automata(source: string, flags: string): { automaton: Automaton; first: readonly number[] }[] {
  const parser = new Parser(source, flags)
  const whole = parser.whole()
  return [whole, ...parser.inner].map((node) => {
    const automaton = new Automaton()
    const { first } = automaton.add(node)
    return { automaton, first }
  })
}

export function ambiguityOf(source: string, flags: string): Ambiguity {
  const each = automata(source, flags).map(({ automaton }) => ambiguity(automaton))
  return each.includes('exponential') ? 'exponential' : each.includes('polynomial') ? 'polynomial' : 'none'
}

/** Texts that take each repetition of a pattern in turn. */
export function pumpsOf(source: string, flags: string): Pump[] {
  return automata(source, flags).flatMap(({ automaton, first }) => {
    const ways = shortest(automaton, first)
    return automaton.masks.flatMap((_, position) => {
      const way = ways.get(position)
      const loop = shortest(automaton, [...automaton.next[position]!.keys()]).get(position)
      return way && loop ? [{ prefix: textOf(automaton, way), part: textOf(automaton, loop) }] : []
    })
  })
}

const textOf = (automaton: Automaton, path: readonly number[]) => path.map((at) => sample(automaton.masks[at]!)).join('')

/** Letters and digits before signs before what cannot be printed. */
const preferred = [...'aZ0_-.:/ '].map((character) => alphabet.indexOf(character))

function sample(mask: bigint): string {
  const has = (index: number) => (mask >> BigInt(index)) & 1n
  const index = preferred.find(has) ?? alphabet.findIndex((_, at) => at > 32 && has(at))
  return alphabet[index < 0 ? alphabet.findIndex((_, at) => has(at)) : index] ?? 'a'
}

function shortest({ next }: Automaton, starts: readonly number[]): Map<number, number[]> {
  const ways = new Map<number, number[]>()
  const queue = starts.map((start) => [start])
  for (let path = queue.shift(); path; path = queue.shift()) {
    const at = path.at(-1)!
    if (ways.has(at)) continue
    ways.set(at, path)
    for (const to of next[at]!.keys()) queue.push([...path, to])
  }
  return ways
}

function ambiguity(automaton: Automaton): Ambiguity {
  const looping = automaton.masks.map((_, at) => at).filter((at) => reaches(automaton, [at], [at]))
  for (const at of looping) if (comesBackTwice(automaton, at)) return 'exponential'
  // Two copies are much fewer states than three, and leave few candidates.
  const leads = (from: number[], to: number[]) => reaches(automaton, from, to)
  for (const p of looping)
    for (const q of looping)
      if (p !== q && leads([p], [q]) && leads([p, p], [p, q]) && leads([p, q], [q, q]) && leads([p, p, q], [p, q, q])) return 'polynomial'
  return 'none'
}

/** The states of several copies of an automaton that one more character leads to. */
function* together({ next, masks }: Automaton, from: readonly number[]): Generator<{ to: number[]; ways: number }> {
  const [head, ...rest] = from.map((at) => [...next[at]!])
  const grow = function* (
    to: number[],
    mask: bigint,
    ways: number,
    left: readonly [number, number][][],
  ): Generator<{ to: number[]; ways: number }> {
    const [choices, ...others] = left
    if (!choices) return yield { to, ways }
    for (const [state, count] of choices) {
      const shared = mask & masks[state]!
      if (shared !== 0n) yield* grow([...to, state], shared, Math.max(ways, count), others)
    }
  }
  for (const [state, count] of head ?? []) yield* grow([state], masks[state]!, count, rest)
}

function reaches(automaton: Automaton, from: readonly number[], goal: readonly number[]): boolean {
  const seen = new Set<string>()
  const waiting = [[...from]]
  const target = goal.join()
  for (let at = waiting.pop(); at; at = waiting.pop())
    for (const { to } of together(automaton, at)) {
      const key = to.join()
      if (key === target) return true
      if (!seen.has(key)) {
        seen.add(key)
        waiting.push(to)
      }
    }
  return false
}

/** Whether two different paths over one text lead from a state back to it. */
function comesBackTwice(automaton: Automaton, state: number): boolean {
  const seen = new Set<string>()
  const waiting = [{ at: [state, state], split: false }]
  for (let entry = waiting.pop(); entry; entry = waiting.pop())
    for (const { to, ways } of together(automaton, entry.at)) {
      const split = entry.split || to[0] !== to[1] || (ways > 1 && to[0] === to[1])
      if (split && to[0] === state && to[1] === state) return true
      const key = `${to.join()} ${split}`
      if (seen.has(key)) continue
      seen.add(key)
      waiting.push({ at: to, split })
    }
  return false
}
