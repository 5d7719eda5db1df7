/**
 * Decodes YAML nodes into typed values by a schema, and reports all problems at once with their positions.
 *
 * A walk over the schema decides the type of each scalar (`5` is a string where a string is expected), finds unknown and
 * duplicate keys, and resolves aliases within a budget. valibot then checks patterns and bounds of the value, and its issues
 * are mapped back to the nodes.
 */
import * as v from 'valibot'
import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { resolveAlias } from './anchors.ts'
import type { Issue } from './config-error.ts'
import { nearest } from './nearest.ts'
import { formatPath, type Path } from './path.ts'
import { plainBoolean, plainNumber, plainValue } from './scalar.ts'
import { type Schema, type Shape, unwrap } from './shape.ts'
import { positionOf } from './stream.ts'

/** Maximum number of nodes of one file after aliases are expanded. */
export const nodeBudget = 100_000

/** Shared by all documents of a file. */
export interface Budget {
  nodes: number
}

/** The result of decoding a document. */
export interface Decoded<T> {
  /** Present when there are no issues. */
  value?: T
  issues: Issue[]
  /** The position of the node at a path, or of the closest node around it. */
  locate(path: Path): { line: number; column: number } | undefined
}

/** Decodes a node by a schema. */
export function decode<S extends Schema>(
  root: Node | null,
  schema: S,
  context: { document: Document; lines: LineCounter; label?: string; budget?: Budget },
): Decoded<v.InferOutput<S>> {
  const walk = new Walk(context.document, context.lines, context.label, context.budget ?? { nodes: 0 })
  const value = walk.node(root, schema, [])
  const finish = (): Decoded<v.InferOutput<S>> => ({
    issues: walk.issues.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)),
    locate: walk.locate,
  })
  if (walk.exhausted) return finish()
  const result = v.safeParse(schema, value)
  for (const issue of result.issues ?? []) {
    const path = (issue.path ?? []).map(({ key }) => key as string | number)
    if (!walk.failed(path)) walk.report(path, wordIssue(issue))
  }
  return walk.issues.length ? finish() : { ...finish(), value: result.output as v.InferOutput<S> }
}

function wordIssue(issue: v.BaseIssue<unknown>): string {
  if (issue.input === undefined) return 'required, but missing'
  if (issue.type === 'picklist' || issue.type === 'literal' || issue.type === 'union')
    return `${show(issue.input)} is not ${issue.expected?.replace(/[()]/g, '').replaceAll(' | ', ', ') ?? 'allowed'}`
  return issue.message.replace('{}', show(issue.input))
}

/** A value as quoted in messages. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

const expectedTypes: Record<string, string> = {
  string: 'string',
  number: 'number',
  boolean: 'boolean',
  array: 'list',
  object: 'map',
  record: 'map',
  picklist: 'string',
  literal: 'string',
}

class Walk {
  readonly issues: Issue[] = []
  exhausted = false
  #positions = new Map<string, Node>()
  #failed = new Set<string>()
  #open = new Set<Node>()

  constructor(
    readonly document: Document,
    readonly lines: LineCounter,
    readonly label: string | undefined,
    readonly budget: Budget,
  ) {}

  report(path: Path, message: string, at?: Node | null): void {
    this.#failed.add(formatPath(path))
    if (this.issues.length >= 100) return
    const position = at?.range ? positionOf(this.lines, at.range[0]) : this.locate(path)
    this.issues.push({ ...(this.label && { document: this.label }), path: formatPath(path), ...position, message })
  }

  /** Whether a problem of this path, or of one around it, was reported already. */
  failed(path: Path): boolean {
    if (this.#failed.size === 0) return false
    for (let length = path.length; length >= 0; length--) if (this.#failed.has(formatPath(path.slice(0, length)))) return true
    return false
  }

  locate = (path: Path): { line: number; column: number } | undefined => {
    for (let length = path.length; length >= 0; length--) {
      const range = this.#positions.get(formatPath(path.slice(0, length)))?.range
      if (range) return positionOf(this.lines, range[0])
    }
    return undefined
  }

  node(given: Node | null, schema: Schema, path: Path, place = formatPath(path)): unknown {
    if (!this.#spend(1, path, given)) return undefined
    const node = this.#resolve(given, path)
    if (given && !this.#positions.has(place)) this.#positions.set(place, given)
    if (node === undefined || node === null || (isScalar(node) && isNull(node))) return undefined
    if (node !== given) this.#open.add(node)
    try {
      return this.#value(node, unwrap(schema), path)
    } finally {
      if (node !== given) this.#open.delete(node)
    }
  }

  #resolve(node: Node | null, path: Path): Node | null | undefined {
    if (!isAlias(node)) return node
    const target = resolveAlias(node, this.document)
    if (target && !this.#open.has(target)) return target
    this.report(path, `alias "*${node.source}" has no anchor before it, or contains itself`, node)
    return undefined
  }

  #value(node: Node, schema: Shape, path: Path): unknown {
    switch (schema.type) {
      case 'union':
      case 'variant':
        return this.#value(node, unwrap(choose(schema.options as Schema[], node)), path)
      case 'object':
      case 'strict_object':
      case 'loose_object':
        return isMap(node) ? this.#map(node, path, schema.entries) : this.#refuse(node, schema, path)
      case 'record':
        return isMap(node) ? this.#map(node, path, undefined, schema.value) : this.#refuse(node, schema, path)
      case 'array':
        return isSeq(node) && schema.item ? this.#list(node.items, path, schema.item) : this.#refuse(node, schema, path)
      case 'unknown':
        if (isMap(node)) return this.#map(node, path, undefined, schema as unknown as Schema)
        if (isSeq(node)) return this.#list(node.items, path, schema as unknown as Schema)
        return isScalar(node) ? anything(node) : undefined
      default:
        return isScalar(node) ? this.#scalar(node, schema, path) : this.#refuse(node, schema, path)
    }
  }

  #list(items: unknown[], path: Path, item: Schema): unknown[] {
    return items.map((each, index) => {
      const at = [...path, index]
      const value = this.node(each as Node, item, at)
      const lost = () => this.budget.nodes > nodeBudget || this.failed(at)
      if (value === undefined && unwrap(item).type !== 'unknown' && !lost()) this.report(at, 'empty list item', each as Node)
      return value ?? null
    })
  }

  #map(node: YAMLMap, path: Path, entries?: Record<string, Schema>, every?: Schema): Record<string, unknown> {
    const result: Record<string, unknown> = Object.create(null)
    const seen = new Map<string, Node>()
    const merged: Pair[] = []
    const sources = new Set<Node>() // merging a map again at one place has no effect
    for (const pair of node.items) {
      const key = this.#resolve(pair.key as Node | null, path)
      if (!isScalar(key) || typeof key.value !== 'string') {
        this.report(path, 'a key that is not a string', (pair.key as Node) ?? node)
        continue
      }
      if (key.value === '<<' && key.type === 'PLAIN') {
        this.#merge(pair.value as Node | null, path, merged, sources)
        continue
      }
      const first = seen.get(key.value)
      if (first) {
        const { line } = positionOf(this.lines, first.range?.[0] ?? 0)
        this.report([...path, key.value], `duplicate key ${show(key.value)}, first on line ${line}`, pair.key as Node)
        continue
      }
      seen.set(key.value, pair.key as Node)
      this.#entry(result, key.value, pair, path, entries, every)
    }
    for (const pair of this.exhausted ? [] : merged) {
      const key = isScalar(pair.key) ? String(pair.key.value) : ''
      if (seen.has(key)) continue
      seen.set(key, pair.key as Node)
      this.#entry(result, key, pair, path, entries, every)
    }
    return { ...result }
  }

  #entry(result: Record<string, unknown>, key: string, pair: Pair, path: Path, entries?: Record<string, Schema>, every?: Schema): void {
    const at = [...path, key]
    const schema = entries ? (Object.hasOwn(entries, key) ? entries[key] : undefined) : every
    if (!schema) {
      const guess = nearest(key, Object.keys(entries ?? {}))
      this.report(at, `unknown key ${show(key)}${guess ? `, did you mean ${show(guess)}?` : ''}`, pair.key as Node)
      return
    }
    const place = formatPath(at)
    if (pair.key) this.#positions.set(place, pair.key as Node)
    const value = this.node(pair.value as Node | null, schema, at, place)
    if (value !== undefined) result[key] = value
    else if (unwrap(schema).type === 'unknown' && !this.failed(at)) result[key] = null
    else if (every && unwrap(schema).type === 'string' && !this.failed(at)) result[key] = ''
    else if (every && !this.failed(at)) this.report(at, 'empty entry')
  }

  /** Collects what `<<:` merges: a map, or a list of maps, where the first map with a key wins. */
  #merge(value: Node | null, path: Path, merged: Pair[], sources: Set<Node>): void {
    const node = this.#resolve(value, path)
    for (const item of isSeq(node) ? node.items : [node]) {
      // Each item is charged to the budget, also when it is empty or was merged before.
      if (!this.#spend(1, path, value)) return
      const map = isSeq(node) ? this.#resolve(item as Node, path) : node
      if (!isMap(map)) this.report(path, 'the merge key "<<" expects a map', value)
      else if (!sources.has(map)) {
        sources.add(map)
        if (!this.#spend(map.items.length, path, value)) return // charged before it is collected
        for (const pair of map.items) if (isPair(pair) && isScalar(pair.key) && pair.key.value !== '<<') merged.push(pair as Pair)
      }
    }
  }

  /** Takes nodes from the budget; returns false, and reports once, when it is exhausted. */
  #spend(count: number, path: Path, at: Node | null): boolean {
    if (this.exhausted) return false
    this.budget.nodes += count
    if (this.budget.nodes <= nodeBudget) return true
    this.exhausted = true
    this.report(path, `too many values: aliases may expand to ${nodeBudget} at most`, at)
    return false
  }

  #scalar(node: Scalar, schema: Shape, path: Path): unknown {
    const text = typeof node.value === 'string' ? node.value : String(node.value ?? '')
    const plain = node.type === 'PLAIN' && node.tag !== 'tag:yaml.org,2002:str'
    if (schema.type === 'number') {
      const number = plain ? plainNumber(text) : undefined
      return number ?? this.#refuse(node, schema, path)
    }
    if (schema.type === 'boolean') {
      const boolean = plain ? plainBoolean(text) : undefined
      return boolean ?? this.#refuse(node, schema, path)
    }
    return text
  }

  #refuse(node: Node, schema: Shape, path: Path): undefined {
    const found = isMap(node) ? 'map' : isSeq(node) ? 'list' : isScalar(node) ? describeScalar(node) : 'another type'
    this.report(path, `expected ${expectedTypes[schema.type] ?? 'another type'}, got ${found}`, node)
    return undefined
  }
}

const isNull = (node: Scalar) => node.type === 'PLAIN' && plainValue(String(node.value ?? '')) === null

const anything = (node: Scalar) =>
  node.type === 'PLAIN' && node.tag !== 'tag:yaml.org,2002:str' ? plainValue(String(node.value ?? '')) : node.value

function describeScalar(node: Scalar): string {
  const value = anything(node)
  if (typeof value === 'number' || typeof value === 'boolean') return `${String(node.value)}`
  return `string ${show(String(node.value))}`
}

/** The option of a union that fits the shape of the node. */
function choose(options: readonly Schema[], node: Node): Schema | undefined {
  const fits = (type: string) => {
    if (isMap(node)) return ['object', 'record', 'strict_object', 'unknown'].includes(type)
    if (isSeq(node)) return type === 'array' || type === 'unknown'
    return !['object', 'record', 'strict_object', 'array'].includes(type)
  }
  const found = options.filter((option) => fits(unwrap(option).type))
  const number = isScalar(node) && node.type === 'PLAIN' && plainNumber(String(node.value)) !== undefined
  return found.find((option) => (unwrap(option).type === 'number') === number) ?? found[0] ?? options[0]
}
