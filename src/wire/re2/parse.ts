/** Parses RE2 syntax as in Go's package regexp, without Unicode's named classes. https://pkg.go.dev/regexp/syntax */
import { folded, inverse, largest, normal, perlClasses, posixClasses, type Ranges } from './class.ts'

/** A condition between two characters. */
export type Assertion = 'begin' | 'end' | 'line-begin' | 'line-end' | 'word' | 'no-word'

/** A node of a pattern. */
export type Node =
  | { readonly kind: 'set'; readonly ranges: Ranges }
  | { readonly kind: 'assert'; readonly what: Assertion }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly parts: readonly Node[] }
  /** `most` is -1 for any number. */
  | { readonly kind: 'repeat'; readonly part: Node; readonly least: number; readonly most: number }

/** An invalid pattern; the message names the part and the reason. */
export class PatternError extends Error {
  override name = 'PatternError'
  constructor(what: string, part: string) {
    super(`error parsing regexp: ${what}: \`${part}\``)
  }
}

/** Upper limit of a counted repetition, also of the product of nested ones. */
const mostRepeats = 1000
const deepest = 250

interface Flags {
  readonly i: boolean
  readonly m: boolean
  readonly s: boolean
}

/** Parses a pattern. Throws PatternError. */
export function parse(pattern: string): Node {
  const parser = new Parser(pattern)
  const node = parser.choice()
  if (!parser.done) throw new PatternError('unexpected )', pattern)
  return node
}

const controls: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 }
const assertions: Readonly<Record<string, Assertion>> = { A: 'begin', z: 'end', b: 'word', B: 'no-word' }

class Parser {
  #at = 0
  /** Set by `(?i)` until the end of its group. */
  #flags: Flags = { i: false, m: false, s: false }

  constructor(readonly pattern: string) {}

  get done(): boolean {
    return this.#at >= this.pattern.length
  }

  choice(flags: Flags = this.#flags, depth = 0): Node {
    if (depth > deepest) throw new PatternError('expression nests too deeply', this.pattern)
    const before = this.#flags
    this.#flags = flags
    const first = this.#sequence(depth)
    const parts = [first]
    while (this.#take('|')) parts.push(this.#sequence(depth))
    this.#flags = before
    return parts.length === 1 ? first : { kind: 'choice', parts }
  }

  #sequence(depth: number): Node {
    const parts: Node[] = []
    while (!this.done && !this.#sees('|') && !this.#sees(')')) {
      const start = this.#at
      const part = this.#atom(depth)
      if (part) parts.push(this.#repeated(part, start))
    }
    const [only] = parts
    return only && parts.length === 1 ? only : { kind: 'sequence', parts }
  }

  #repeated(part: Node, start: number): Node {
    const operator = this.#at
    const range = this.#operator()
    if (!range) return part
    this.#take('?') // non-greedy: the same strings match
    const node: Node = { kind: 'repeat', part, ...range }
    if (!fits(node, mostRepeats)) throw new PatternError('invalid repeat count', this.pattern.slice(start, this.#at))
    const next = this.#at
    if (this.#operator()) throw new PatternError('invalid nested repetition operator', this.pattern.slice(operator, this.#at))
    this.#at = next
    return node
  }

  #operator(): { least: number; most: number } | undefined {
    if (this.#take('*')) return { least: 0, most: -1 }
    if (this.#take('+')) return { least: 1, most: -1 }
    if (this.#take('?')) return { least: 0, most: 1 }
    const counted = this.#match(/\{(\d{1,9})(,(\d{0,9}))?\}/y)
    if (!counted) return undefined
    const least = Number(counted[1])
    const most = counted[2] === undefined ? least : counted[3] === '' ? -1 : Number(counted[3])
    if (least > mostRepeats || most > mostRepeats || (most >= 0 && most < least)) throw new PatternError('invalid repeat count', counted[0])
    return { least, most }
  }

  /** Undefined for an element without a match of its own, such as a change of flags. */
  #atom(depth: number): Node | undefined {
    const start = this.#at
    if (this.#operator()) throw new PatternError('missing argument to repetition operator', this.pattern.slice(start, this.#at))
    if (this.#take('(')) return this.#group(depth)
    if (this.#take('[')) return this.#brackets(start)
    if (this.#take('.')) return { kind: 'set', ranges: this.#flags.s ? [[0, largest]] : inverse([[10, 10]]) }
    if (this.#take('^')) return { kind: 'assert', what: this.#flags.m ? 'line-begin' : 'begin' }
    if (this.#take('$')) return { kind: 'assert', what: this.#flags.m ? 'line-end' : 'end' }
    if (this.#sees('\\')) return this.#escaped()
    return this.#set(this.#character())
  }

  #group(depth: number): Node | undefined {
    const start = this.#at - 1
    let flags = this.#flags
    if (this.#sees('?')) {
      const named = this.#match(/\?P?<([A-Za-z0-9_]+)>/y)
      const changes = named ? undefined : this.#match(/\?([imsU]*)(?:-([imsU]+))?([:)])/y)
      if (!named && !changes) throw new PatternError('invalid or unsupported Perl syntax', this.pattern.slice(start, start + 3))
      if (changes) {
        const [, on = '', off = '', end] = changes
        const set = (name: keyof Flags) => (off.includes(name) ? false : on.includes(name) || flags[name])
        flags = { i: set('i'), m: set('m'), s: set('s') }
        if (end === ')') {
          this.#flags = flags
          return undefined
        }
      }
    }
    const node = this.choice(flags, depth + 1)
    if (!this.#take(')')) throw new PatternError('missing closing )', this.pattern)
    return node
  }

  #escaped(): Node {
    const start = this.#at
    const letter = this.pattern[start + 1] ?? ''
    const what = Object.hasOwn(assertions, letter) ? assertions[letter] : undefined
    if (what) {
      this.#at += 2
      return { kind: 'assert', what }
    }
    const ranges = this.#perl()
    return ranges ? { kind: 'set', ranges } : this.#set(this.#escape())
  }

  /** A class such as `\d`, or `\D`. */
  #perl(): Ranges | undefined {
    const [, letter = ''] = this.#match(/\\([dwsDWS])/y) ?? []
    return perlClasses.get(letter)
  }

  /** An escaped character. */
  #escape(): number {
    const start = this.#at
    const match = this.#match(
      /\\(?:x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,8})\}|(0[0-7]{0,2}|[1-7][0-7]{1,2})|([aftnrv])|([^0-9A-Za-z\u0080-\uffff]))/y,
    )
    const [, short, long, octal, control, mark] = match ?? []
    const code = short ?? long ?? octal
    const value =
      code !== undefined ? Number.parseInt(code, octal ? 8 : 16) : ((control ? controls[control] : mark?.charCodeAt(0)) ?? largest + 1)
    if (value > largest)
      throw this.#at > start || start + 1 < this.pattern.length
        ? new PatternError('invalid escape sequence', this.pattern.slice(start, Math.max(this.#at, start + 2)))
        : new PatternError('trailing backslash at end of expression', '')
    return value
  }

  #brackets(start: number): Node {
    const negated = this.#take('^')
    const ranges: (readonly [number, number])[] = []
    let first = true
    while (first || !this.#sees(']')) {
      if (this.done) throw new PatternError('missing closing ]', this.pattern.slice(start))
      first = false
      ranges.push(...this.#member(start))
    }
    this.#at++
    const all = this.#flags.i ? folded(normal(ranges)) : normal(ranges)
    return { kind: 'set', ranges: negated ? inverse(all) : all }
  }

  #member(start: number): Ranges {
    const posix = this.#match(/\[:(\^?)(\w+):\]/y)
    if (posix) {
      const [whole, not, name = ''] = posix
      const ranges = Object.hasOwn(posixClasses, name) ? posixClasses[name] : undefined
      if (!ranges) throw new PatternError('invalid character class range', whole)
      return not ? inverse(normal(ranges)) : ranges
    }
    const perl = this.#perl()
    if (perl) return perl
    const from = this.#at
    const low = this.#one(start)
    if (!this.#sees('-') || this.pattern[this.#at + 1] === ']' || this.#at + 1 >= this.pattern.length) return [[low, low]]
    this.#at++
    const high = this.#one(start)
    if (high < low) throw new PatternError('invalid character class range', this.pattern.slice(from, this.#at))
    return [[low, high]]
  }

  #one(start: number): number {
    if (this.done) throw new PatternError('missing closing ]', this.pattern.slice(start))
    return this.#sees('\\') ? this.#escape() : this.#character()
  }

  #character(): number {
    const code = this.pattern.codePointAt(this.#at)
    if (code === undefined) throw new PatternError('missing character at end of expression', '')
    this.#at += code > 0xffff ? 2 : 1
    return code
  }

  #set(code: number): Node {
    const ranges: Ranges = [[code, code]]
    return { kind: 'set', ranges: this.#flags.i ? folded(ranges) : ranges }
  }

  #sees(letter: string): boolean {
    return this.pattern[this.#at] === letter
  }

  #take(letter: string): boolean {
    if (!this.#sees(letter)) return false
    this.#at++
    return true
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.pattern)
    if (match) this.#at += match[0].length
    return match
  }
}

/** Whether the product of nested counted repetitions is within a limit. */
function fits(node: Node, most: number): boolean {
  if (node.kind === 'repeat') {
    const counted = node.least > 1 || node.most > 1
    const times = counted ? Math.max(node.least, node.most) : 1
    return times <= most && fits(node.part, counted && times > 0 ? Math.floor(most / times) : most)
  }
  return !('parts' in node) || node.parts.every((part) => fits(part, most))
}
