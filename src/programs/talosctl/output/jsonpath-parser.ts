/** The syntax of templates and paths; the model is described in jsonpath.ts. */
import { UsageError } from '../failure.ts'

/** One step of a path, from the values found so far to the next ones. */
export type Step =
  | { kind: 'field'; names: readonly string[] }
  | { kind: 'descend' }
  | { kind: 'all' }
  | { kind: 'slice'; from?: number | undefined; to?: number | undefined; step: number }
  | { kind: 'index'; at: number }
  | { kind: 'filter'; left: Operand; operator?: Operator | undefined; right?: Operand | undefined }

type Operator = '==' | '!=' | '<' | '<=' | '>' | '>='

type Operand = { path: readonly Step[] } | { value: unknown }

/** A part of a template: text, a path, or what is repeated for each value of a path. */
export type Part = { text: string } | { path: readonly Step[]; fromRoot: boolean } | { range: readonly Step[]; body: readonly Part[] }

/** Reads a template or a path from its beginning; throws UsageError with the position of the error. */
export class Parser {
  #at = 0
  constructor(readonly text: string) {}

  get ended(): boolean {
    return this.#at >= this.text.length
  }

  wrong(wanted: string): UsageError {
    return new UsageError(`jsonpath "${this.text}": want ${wanted} at character ${this.#at + 1}`)
  }

  template(nested = false): Part[] {
    const parts: Part[] = []
    while (!this.ended) {
      const open = this.text.indexOf('{', this.#at)
      const text = this.text.slice(this.#at, open < 0 ? undefined : open)
      if (text) parts.push({ text })
      this.#at = open < 0 ? this.text.length : open + 1
      if (open < 0) break
      this.#blanks()
      if (this.#keyword('end')) {
        this.#expect('}')
        if (!nested) throw this.wrong('a "{range}" before "{end}"')
        return parts
      }
      parts.push(...this.#action())
    }
    if (nested) throw this.wrong('"{end}"')
    return parts
  }

  path(): Step[] {
    this.#blanks()
    if (this.#peek() === '$' || this.#peek() === '@') this.#at++
    const steps: Step[] = []
    for (;;) {
      const next = this.#peek()
      if (next === '.') {
        this.#at++
        if (this.#peek() === '.') {
          this.#at++
          if (steps.at(-1)?.kind !== 'descend') steps.push({ kind: 'descend' })
        }
        if (this.#peek() === '[') continue
        const name = this.#name()
        if (name === '*') steps.push({ kind: 'all' })
        else if (name !== '') steps.push({ kind: 'field', names: [name] })
      } else if (next === '[') steps.push(this.#bracket())
      else if (steps.length === 0 && next !== undefined && /[\w-]/.test(next)) steps.push({ kind: 'field', names: [this.#name()] })
      else return steps
    }
  }

  #action(): Part[] {
    if (this.#keyword('range')) {
      const range = this.path()
      this.#expect('}')
      return [{ range, body: this.template(true) }]
    }
    const parts: Part[] = []
    for (;;) {
      this.#blanks()
      const next = this.#peek()
      if (next === '}') break
      if (next === '"' || next === "'") parts.push({ text: this.#quoted() })
      else if (next === undefined) throw this.wrong('"}"')
      else {
        const before = this.#at
        parts.push({ path: this.path(), fromRoot: next === '$' })
        if (this.#at === before) throw this.wrong('a path, a quoted text, "range" or "end"')
      }
    }
    this.#at++
    return parts
  }

  #bracket(): Step {
    this.#expect('[')
    this.#blanks()
    const next = this.#peek()
    if (next === '*') {
      this.#at++
      return this.#close({ kind: 'all' })
    }
    if (next === '?') return this.#filter()
    if (next === '"' || next === "'") {
      const names = [this.#quoted()]
      for (this.#blanks(); this.#peek() === ','; this.#blanks()) {
        this.#at++
        this.#blanks()
        names.push(this.#quoted())
      }
      return this.#close({ kind: 'field', names })
    }
    const match = /^(-?\d+)?(?:(:)(-?\d+)?(?::(-?\d+)?)?)?\s*\]/.exec(this.text.slice(this.#at))
    if (!match || match[0] === ']') throw this.wrong('an index, a slice, "*", a quoted name or "?(…)"')
    this.#at += match[0].length
    const [, from, colon, to, step] = match
    if (!colon) return { kind: 'index', at: Number(from) }
    return { kind: 'slice', from: from ? Number(from) : undefined, to: to ? Number(to) : undefined, step: step ? Number(step) : 1 }
  }

  #filter(): Step {
    this.#expect('?')
    this.#expect('(')
    const left = this.#operand()
    this.#blanks()
    const operator = /^(==|!=|<=|>=|<|>)/.exec(this.text.slice(this.#at))?.[0] as Operator | undefined
    let right: Operand | undefined
    if (operator) {
      this.#at += operator.length
      right = this.#operand()
    }
    this.#blanks()
    this.#expect(')')
    return this.#close({ kind: 'filter', left, operator, right })
  }

  #operand(): Operand {
    this.#blanks()
    const next = this.#peek()
    if (next === '"' || next === "'") return { value: this.#quoted() }
    const literal = /^(true|false|null|-?\d+(?:\.\d+)?)(?![\w.])/.exec(this.text.slice(this.#at))?.[0]
    if (literal !== undefined) {
      this.#at += literal.length
      return { value: JSON.parse(literal) }
    }
    if (next !== '@' && next !== '$' && next !== '.') throw this.wrong('a path, a text or a number')
    return { path: this.path() }
  }

  #close(step: Step): Step {
    this.#blanks()
    this.#expect(']')
    return step
  }

  #quoted(): string {
    const quote = this.#peek()
    if (quote !== '"' && quote !== "'") throw this.wrong('a quoted text')
    const pattern = quote === '"' ? /^"((?:[^\\"]|\\.)*)"/s : /^'((?:[^\\']|\\.)*)'/s
    const end = pattern.exec(this.text.slice(this.#at))
    if (!end) throw this.wrong(`the end of the text that begins with ${quote}`)
    this.#at += end[0].length
    const plain: Record<string, string> = { n: '\n', t: '\t', r: '\r' }
    return (end[1] ?? '').replace(/\\(.)/gs, (_, letter: string) => plain[letter] ?? letter)
  }

  #name(): string {
    if (this.#peek() === '*') {
      this.#at++
      return '*'
    }
    const match = /^(?:[^.[\]{}()\s"'=!<>,\\]|\\.)*/.exec(this.text.slice(this.#at))?.[0] ?? ''
    this.#at += match.length
    return match.replace(/\\(.)/g, '$1')
  }

  #keyword(word: string): boolean {
    const rest = this.text.slice(this.#at)
    if (!rest.startsWith(word) || /^[\w.]/.test(rest.slice(word.length))) return false
    this.#at += word.length
    this.#blanks()
    return true
  }

  #expect(letter: string): void {
    this.#blanks()
    if (this.#peek() !== letter) throw this.wrong(`"${letter}"`)
    this.#at++
  }

  #blanks(): void {
    while (this.#peek() !== undefined && /\s/.test(this.#peek() ?? '')) this.#at++
  }

  #peek(): string | undefined {
    return this.text[this.#at]
  }
}
