/**
 * Templates of the kubectl kind: text with `{…}` in it, each a path from the root (`{.spec.hostname}`), a quoted text
 * (`{"\n"}`) or one of `{range PATH}` … `{end}`. A path is made of `.name`, `['name']`, `['a','b']`, `[n]`, `[from:to:step]`,
 * `[*]`, `..name`, `[?(@.name=="x")]`. Each value that is found, and each text, is a line of its own; a path that leads to
 * nothing is an error.
 */

import { UsageError } from '../failure.ts'

type Step =
  | { kind: 'field'; names: readonly string[] }
  | { kind: 'descend' }
  | { kind: 'all' }
  | { kind: 'slice'; from?: number | undefined; to?: number | undefined; step: number }
  | { kind: 'index'; at: number }
  | { kind: 'filter'; left: Operand; operator?: Operator | undefined; right?: Operand | undefined }

type Operator = '==' | '!=' | '<' | '<=' | '>' | '>='
type Operand = { path: readonly Step[] } | { value: unknown }
type Part = { text: string } | { path: readonly Step[]; fromRoot: boolean } | { range: readonly Step[]; body: readonly Part[] }

/** A parsed template: values in, text out. */
export type Template = (value: unknown) => string

/** Parses a template; throws UsageError with the position of the error. */
export function parseTemplate(template: string): Template {
  const parts = new Parser(template).template()
  return (value) =>
    render(parts, value, value)
      .map((each) => `${printLine(each)}\n`)
      .join('')
}

/** Parses one path such as "{.spec.hostname}" or ".spec.hostname" and gives the function that finds its values. */
export function parsePath(path: string): (value: unknown) => unknown[] {
  const inner = path.startsWith('{') && path.endsWith('}') ? path.slice(1, -1) : path
  const parser = new Parser(inner)
  const steps = parser.path()
  if (!parser.ended) throw parser.wrong('the end of the path')
  return (value) => walk(steps, [value])
}

/** A value as a line: maps and lists as indented JSON with their keys sorted. */
function printLine(value: unknown): string {
  if (value === undefined || value === null) return '<nil>'
  return typeof value === 'object' ? JSON.stringify(sortedKeys(value), null, 4) : String(value)
}

/** The same value with the keys of every map in order. */
export function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys)
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return Object.fromEntries(entries.map(([key, each]) => [key, sortedKeys(each)]))
}

/** A found value as text: objects and lists as JSON, nothing for what is not there. */
export function printValue(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

class Parser {
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

function render(parts: readonly Part[], root: unknown, current: unknown): unknown[] {
  return parts.flatMap((part) => {
    if ('text' in part) return [part.text]
    if ('range' in part) return find(part.range, current).flatMap((item) => render(part.body, root, item))
    return find(part.path, part.fromRoot ? root : current)
  })
}

/** What a path leads to. Throws UsageError that names the key or the index that is not there. */
function find(steps: readonly Step[], value: unknown): unknown[] {
  let descending = false
  return steps.reduce<unknown[]>(
    (values, step) => {
      const found = values.flatMap((each) => apply(step, each))
      // Any of all the values below may lack a key.
      if (found.length === 0 && !descending) refuseMissing(step, values)
      descending = step.kind === 'descend'
      return found
    },
    [value],
  )
}

function refuseMissing(step: Step, values: readonly unknown[]): void {
  if (step.kind === 'field') throw new UsageError(`error finding result for jsonpath: ${step.names.join(',')} is not found`)
  const [first] = values
  if (step.kind === 'index' && Array.isArray(first))
    throw new UsageError(`error finding result for jsonpath: array index out of bounds: index ${step.at}, length ${first.length}`)
}

/** Each `..` can multiply what is found. */
const mostFound = 100_000

function walk(steps: readonly Step[], values: unknown[]): unknown[] {
  return steps.reduce((found, step) => {
    const next: unknown[] = []
    for (const value of found) {
      for (const one of apply(step, value)) next.push(one)
      if (next.length > mostFound) throw new UsageError(`jsonpath: more than ${mostFound} values match, name them more closely`)
    }
    return next
  }, values)
}

function apply(step: Step, value: unknown): unknown[] {
  if (step.kind === 'descend') return [value, ...children(value).flatMap((child) => apply(step, child))]
  if (step.kind === 'field') {
    if (typeof value !== 'object' || value === null) return []
    return step.names.flatMap((name) => (Object.hasOwn(value, name) ? [(value as Record<string, unknown>)[name]] : []))
  }
  if (step.kind === 'all') return children(value)
  if (step.kind === 'filter') return children(value).filter((child) => holds(step, child))
  if (!Array.isArray(value)) return []
  if (step.kind === 'index') return value.slice(step.at, step.at === -1 ? undefined : step.at + 1)
  const part = value.slice(step.from, step.to)
  return step.step > 1 ? part.filter((_, index) => index % step.step === 0) : part
}

function children(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : []
}

function holds({ left, operator, right }: Step & { kind: 'filter' }, value: unknown): boolean {
  const [a] = 'path' in left ? walk(left.path, [value]) : [left.value]
  if (!operator || !right) return a !== undefined
  const [b] = 'path' in right ? walk(right.path, [value]) : [right.value]
  if (operator === '==') return a === b
  if (operator === '!=') return a !== b
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) return false
  const [x, y] = [a as number, b as number]
  return operator === '<' ? x < y : operator === '<=' ? x <= y : operator === '>' ? x > y : x >= y
}
