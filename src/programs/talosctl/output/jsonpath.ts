/**
 * Templates of the kubectl kind: text with `{…}` in it, each a path from the root (`{.spec.hostname}`), a quoted text
 * (`{"\n"}`) or one of `{range PATH}` … `{end}`. A path is made of `.name`, `['name']`, `['a','b']`, `[n]`, `[from:to:step]`,
 * `[*]`, `..name`, `[?(@.name=="x")]`. Each value that is found, and each text, is a line of its own; a path that leads to
 * nothing is an error.
 */
import { UsageError } from '../failure.ts'
import { Parser, type Part, type Step } from './jsonpath-parser.ts'

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
