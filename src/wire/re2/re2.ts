/**
 * Regular expressions from untrusted sources, in time linear in the text: all alternatives are followed in parallel, without
 * backtracking. The syntax is that of RE2; the result is whether a text contains a match.
 */
import { includes, type Ranges } from './class.ts'
import { type Assertion, type Node, PatternError, parse } from './parse.ts'

const longestPattern = 1024
/** Maximum steps of a compiled pattern; each character of a text costs at most as many. */
export const longestProgram = 4000

/** A step of a compiled pattern and where it leads; `index` is its place among all of them. */
type Step = { readonly index: number } & (
  | { readonly kind: 'match' }
  | { readonly kind: 'set'; readonly ranges: Ranges; readonly next: Step }
  | { readonly kind: 'assert'; readonly what: Assertion; readonly next: Step }
  /** The `next` of a loop is set when what it repeats has been compiled. */
  | { readonly kind: 'split'; next: Step; readonly other: Step }
)

/** A compiled pattern. */
export class Re2 {
  readonly #start: Step
  readonly #current: ThreadList
  readonly #following: ThreadList
  readonly #stack: Step[] = []
  /** Steps of the compiled pattern; each character of a text costs at most as many. */
  readonly size: number
  /** Total steps of all texts so far: its cost. */
  steps = 0

  /** Throws PatternError for an invalid pattern, or one that is too large. */
  constructor(readonly pattern: string) {
    if (pattern.length > longestPattern)
      throw new PatternError(`expression is longer than ${longestPattern} characters`, pattern.slice(0, 32))
    const { start, size } = compile(parse(pattern), pattern)
    this.#start = start
    this.size = size
    this.#current = new ThreadList(size)
    this.#following = new ThreadList(size)
  }

  /** Whether the text contains a match. */
  test(text: string): boolean {
    let current = this.#current
    let following = this.#following
    current.clear()
    let before = -1
    let code = text.codePointAt(0) ?? -1
    for (let at = 0; ; ) {
      // A match may begin anywhere.
      if (this.#follow(current, this.#start, before, code)) return true
      if (code < 0) return false
      at += code > 0xffff ? 2 : 1
      const after = text.codePointAt(at) ?? -1
      following.clear()
      this.steps += current.steps.length
      for (const step of current.steps)
        if (step.kind === 'set' && includes(step.ranges, code) && this.#follow(following, step.next, code, after)) return true
      ;[current, following] = [following, current]
      before = code
      code = after
    }
  }

  /** Adds a step, and all that are reachable from it without a character; returns true when the end is among them. */
  #follow(list: ThreadList, start: Step, before: number, after: number): boolean {
    const stack = this.#stack
    stack.length = 0
    for (let step: Step | undefined = start; step; step = stack.pop()) {
      if (!list.add(step)) continue
      this.steps++
      if (step.kind === 'match') return true
      if (step.kind === 'split') stack.push(step.other, step.next)
      else if (step.kind === 'assert' && holds(step.what, before, after)) stack.push(step.next)
    }
    return false
  }
}

/** The steps reached at one position of the text, each once. */
class ThreadList {
  readonly steps: Step[] = []
  readonly #places: Uint16Array

  constructor(size: number) {
    this.#places = new Uint16Array(size)
  }

  /** False when it is already in the list. */
  add(step: Step): boolean {
    if (this.steps[this.#places[step.index] ?? 0] === step) return false
    this.#places[step.index] = this.steps.length
    this.steps.push(step)
    return true
  }

  clear(): void {
    this.steps.length = 0
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

/** Compiles from the end to the beginning, so that every step is made with the one that follows it. */
function compile(node: Node, pattern: string): { start: Step; size: number } {
  let size = 0
  const index = (): number => {
    if (size >= longestProgram) throw new PatternError('expression is too large', pattern)
    return size++
  }
  const before = (part: Node, next: Step): Step => {
    if (part.kind === 'set') return { kind: 'set', index: index(), ranges: part.ranges, next }
    if (part.kind === 'assert') return { kind: 'assert', index: index(), what: part.what, next }
    if (part.kind === 'sequence') return part.parts.reduceRight((after, each) => before(each, after), next)
    if (part.kind === 'choice')
      return part.parts.map((each) => before(each, next)).reduce((other, each) => ({ kind: 'split', index: index(), next: each, other }))
    return repeated(part, next)
  }
  const repeated = ({ part, least, most }: Extract<Node, { kind: 'repeat' }>, next: Step): Step => {
    let start = next
    if (most < 0) {
      const loop: Step = { kind: 'split', index: index(), next, other: next }
      loop.next = before(part, loop)
      start = loop
    }
    for (let count = least; count < most; count++) start = { kind: 'split', index: index(), next: before(part, start), other: next }
    for (let count = 0; count < least; count++) start = before(part, start)
    return start
  }
  const start = before(node, { kind: 'match', index: index() })
  return { start, size }
}
