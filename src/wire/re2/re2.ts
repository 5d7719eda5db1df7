/**
 * Regular expressions from untrusted sources, in time linear in the text: all alternatives are followed in parallel, without
 * backtracking. The syntax is that of RE2; the result is whether a text contains a match.
 */
import { includes, type Ranges } from './class.ts'
import { type Assertion, type Node, PatternError, parse } from './parse.ts'

const longestPattern = 1024
/** Maximum steps of a compiled pattern; each character of a text costs at most as many. */
export const longestProgram = 4000

const op = { set: 0, split: 1, jump: 2, assert: 3, match: 4 } as const

interface Program {
  readonly ops: number[]
  /** The next step; for a split the first one. */
  readonly next: number[]
  readonly other: number[]
  readonly sets: (Ranges | undefined)[]
  readonly asserts: (Assertion | undefined)[]
}

/** A compiled pattern. */
export class Re2 {
  readonly #program: Program
  readonly #current: ThreadList
  readonly #following: ThreadList
  readonly #stack: number[] = []
  /** Total steps of all texts so far: its cost. */
  steps = 0

  /** Throws PatternError for an invalid pattern, or one that is too large. */
  constructor(readonly pattern: string) {
    if (pattern.length > longestPattern)
      throw new PatternError(`expression is longer than ${longestPattern} characters`, pattern.slice(0, 32))
    this.#program = compile(parse(pattern), pattern)
    this.#current = new ThreadList(this.#program.ops.length)
    this.#following = new ThreadList(this.#program.ops.length)
  }

  /** Steps of the compiled pattern; each character of a text costs at most as many. */
  get size(): number {
    return this.#program.ops.length
  }

  /** Whether the text contains a match. */
  test(text: string): boolean {
    const { ops, next, sets } = this.#program
    let current = this.#current
    let following = this.#following
    current.clear()
    let before = -1
    for (let at = 0; ; ) {
      const code = at < text.length ? text.codePointAt(at)! : -1
      // A match may begin anywhere.
      if (this.#follow(current, 0, before, code)) return true
      if (code < 0) return false
      at += code > 0xffff ? 2 : 1
      const after = at < text.length ? text.codePointAt(at)! : -1
      following.clear()
      this.steps += current.size
      for (let index = 0; index < current.size; index++) {
        const step = current.at(index)
        if (ops[step] === op.set && includes(sets[step]!, code) && this.#follow(following, next[step]!, code, after)) return true
      }
      ;[current, following] = [following, current]
      before = code
    }
  }

  /** Adds a step, and all that are reachable from it without a character; returns true when the end is among them. */
  #follow(list: ThreadList, start: number, before: number, after: number): boolean {
    const { ops, next, other, asserts } = this.#program
    const stack = this.#stack
    stack.length = 0
    stack.push(start)
    while (stack.length > 0) {
      const step = stack.pop()!
      if (!list.add(step)) continue
      this.steps++
      const kind = ops[step]
      if (kind === op.match) return true
      if (kind === op.set) continue
      if (kind === op.split) stack.push(other[step]!)
      if (kind !== op.assert || holds(asserts[step]!, before, after)) stack.push(next[step]!)
    }
    return false
  }
}

/** The steps reached at one position of the text, each once. */
class ThreadList {
  readonly #dense: Uint16Array
  readonly #sparse: Uint16Array
  size = 0

  constructor(steps: number) {
    this.#dense = new Uint16Array(steps)
    this.#sparse = new Uint16Array(steps)
  }

  at(index: number): number {
    return this.#dense[index]!
  }

  /** False when it is already in the list. */
  add(step: number): boolean {
    const index = this.#sparse[step]!
    if (index < this.size && this.#dense[index] === step) return false
    this.#sparse[step] = this.size
    this.#dense[this.size++] = step
    return true
  }

  clear(): void {
    this.size = 0
  }
}

/** `before` and `after` are the characters around the position, -1 where there is none. */
function holds(what: Assertion, before: number, after: number): boolean {
  switch (what) {
    case 'begin':
      return before < 0
    case 'end':
      return after < 0
    case 'line-begin':
      return before < 0 || before === 10
    case 'line-end':
      return after < 0 || after === 10
    case 'word':
      return isWord(before) !== isWord(after)
    case 'no-word':
      return isWord(before) === isWord(after)
  }
}

function isWord(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || (code >= 0x61 && code <= 0x7a)
}

function compile(node: Node, pattern: string): Program {
  const program: Program = { ops: [], next: [], other: [], sets: [], asserts: [] }
  const emit = (kind: number, more: { set?: Ranges; assert?: Assertion } = {}): number => {
    const at = program.ops.length
    if (at >= longestProgram) throw new PatternError('expression is too large', pattern)
    program.ops.push(kind)
    program.next.push(at + 1)
    program.other.push(0)
    program.sets.push(more.set)
    program.asserts.push(more.assert)
    return at
  }
  const here = () => program.ops.length

  const write = (part: Node): void => {
    if (part.kind === 'set') emit(op.set, { set: part.ranges })
    else if (part.kind === 'assert') emit(op.assert, { assert: part.what })
    else if (part.kind === 'sequence') part.parts.forEach(write)
    else if (part.kind === 'choice') writeChoice(part.parts)
    else writeRepeat(part)
  }

  const writeChoice = (parts: readonly Node[]): void => {
    const ends: number[] = []
    parts.forEach((part, index) => {
      const split = index < parts.length - 1 ? emit(op.split) : -1
      write(part)
      if (split < 0) return
      ends.push(emit(op.jump))
      program.other[split] = here()
    })
    for (const end of ends) program.next[end] = here()
  }

  const writeRepeat = ({ part, least, most }: Extract<Node, { kind: 'repeat' }>): void => {
    for (let count = 0; count < least; count++) write(part)
    if (most < 0) {
      const split = emit(op.split)
      write(part)
      program.next[emit(op.jump)] = split
      program.other[split] = here()
      return
    }
    const splits: number[] = []
    for (let count = least; count < most; count++) {
      splits.push(emit(op.split))
      write(part)
    }
    for (const split of splits) program.other[split] = here()
  }

  write(node)
  emit(op.match)
  return program
}
