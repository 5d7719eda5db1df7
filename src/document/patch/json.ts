/** JSON patches (RFC 6902), with pointers (RFC 6901) into YAML nodes. */
import { type Document, isMap, isScalar, isSeq, type Node, Pair, Scalar, type YAMLMap, type YAMLSeq } from 'yaml'
import { ConfigError } from '../config-error.ts'
import type { YamlDocument } from '../stream.ts'
import { detach, keyOf, pairOf, sameNode, textOf } from './node.ts'

/** One operation. */
export interface Operation {
  op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'
  path: string
  from?: string
  value?: Node
}

const verbs = ['add', 'remove', 'replace', 'move', 'copy', 'test']

/** Parses a list of operations; undefined when the list is not a JSON patch. */
export function readOperations(document: YamlDocument): Operation[] | undefined {
  if (!isSeq(document.contents)) return undefined
  return document.contents.items.map((item, index): Operation => {
    const refuse = (detail: string): never => {
      throw new ConfigError([{ message: `operation ${index + 1} of the JSON patch: ${detail}` }])
    }
    if (!isMap(item)) return refuse('not a map with "op" and "path"')
    const map = item as YAMLMap
    const op = textOf(map, 'op') ?? ''
    const path = textOf(map, 'path')
    const from = textOf(map, 'from')
    if (!verbs.includes(op)) refuse(`"op" is ${JSON.stringify(op)}, not one of ${verbs.join(', ')}`)
    if (path === undefined) return refuse('"path" is required')
    if ((op === 'move' || op === 'copy') && from === undefined) refuse(`"from" is required for "${op}"`)
    const pair = pairOf(map, 'value')
    if (['add', 'replace', 'test'].includes(op) && !pair) refuse(`"value" is required for "${op}"`)
    const value = pair ? blocked(detach(pair.value as Node, document as Document)) : undefined
    return { op: op as Operation['op'], path, ...(from !== undefined && { from }), ...(value && { value }) }
  })
}

/** A value in YAML block style, in whatever style it was written. */
function blocked(node: Node): Node {
  if (isMap(node) || isSeq(node)) {
    node.flow = node.items.length === 0
    for (const item of node.items) blocked((isMap(node) ? (item as Pair).value : item) as Node)
  }
  return node
}

/** The segments of a pointer. */
export function pointerSteps(pointer: string): string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) throw new ConfigError([{ message: `${JSON.stringify(pointer)} is not a JSON pointer: it begins with "/"` }])
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** A place inside a document: the target of a pointer once its document is known. */
export interface Place {
  document: YamlDocument
  steps: string[]
}

/** Applies one operation; `find` resolves a pointer to its document. */
export function operate(operation: Operation, find: (pointer: string) => Place): void {
  const { op, path, from, value } = operation
  const refuse = (detail: string): never => {
    throw new ConfigError([{ message: `JSON patch "${op} ${path}": ${detail}` }])
  }
  const place = find(path)
  if (op === 'add') add(place, value ?? refuse('it has no value'), refuse)
  else if (op === 'remove') remove(place, refuse)
  else if (op === 'replace') put(place, value ?? refuse('it has no value'), refuse)
  else if (op === 'test') {
    if (!sameNode(read(place, refuse), value)) refuse('the value there is another one')
  } else {
    const source = find(from ?? refuse('it has no "from"'))
    const taken = detach(read(source, refuse) as Node, source.document as Document)
    if (op === 'move') remove(source, refuse)
    add(place, taken, refuse)
  }
}

type Refuse = (detail: string) => never

/** Follows the segments. */
function walk({ document, steps }: Place, refuse: Refuse): unknown {
  let node: unknown = document.contents
  for (const [depth, step] of steps.entries()) {
    const missing = () => refuse(`there is no "/${steps.slice(0, depth + 1).join('/')}"`)
    if (isMap(node)) {
      const pair = pairOf(node as YAMLMap, step) ?? missing()
      node = pair.value
    } else if (isSeq(node)) {
      const index = /^(0|[1-9]\d*)$/.test(step) ? Number(step) : -1
      if (index < 0 || index >= node.items.length) missing()
      node = node.items[index]
    } else missing()
  }
  return node
}

const read = (place: Place, refuse: Refuse) => walk(place, refuse)

function parentOf({ document, steps }: Place, refuse: Refuse): { parent: YAMLMap | YAMLSeq; last: string } {
  const last = steps.at(-1)
  if (last === undefined) return refuse('a whole document cannot be replaced this way')
  let parent = walk({ document, steps: steps.slice(0, -1) }, refuse)
  if (isScalar(parent) && (parent.value === '' || parent.value === null) && steps.length > 1) {
    const holder = parentOf({ document, steps: steps.slice(0, -1) }, refuse)
    parent = document.createNode({}) as YAMLMap
    setIn(holder.parent, holder.last, parent as Node)
  }
  if (!isMap(parent) && !isSeq(parent)) return refuse(`"/${steps.slice(0, -1).join('/')}" is neither a map nor a list`)
  return { parent: parent as YAMLMap | YAMLSeq, last }
}

function setIn(parent: YAMLMap | YAMLSeq, key: string, value: Node): void {
  if (isMap(parent)) {
    const pair = pairOf(parent, key)
    if (pair) pair.value = value
    else parent.items.push(new Pair(new Scalar(key), value))
  } else (parent as YAMLSeq).items[Number(key)] = value
}

function add(place: Place, value: Node, refuse: Refuse): void {
  const { parent, last } = parentOf(place, refuse)
  parent.flow = false
  if (isMap(parent)) {
    setIn(parent, last, value)
    return
  }
  const list = parent as YAMLSeq
  const index = last === '-' ? list.items.length : /^(0|[1-9]\d*)$/.test(last) ? Number(last) : -1
  if (index < 0 || index > list.items.length)
    refuse(`the list has no place "${last}": it has ${list.items.length} items, and "-" is its end`)
  list.items.splice(index, 0, value)
}

function put(place: Place, value: Node, refuse: Refuse): void {
  read(place, refuse)
  const { parent, last } = parentOf(place, refuse)
  setIn(parent, last, value)
}

function remove(place: Place, refuse: Refuse): void {
  read(place, refuse)
  const { parent, last } = parentOf(place, refuse)
  if (isMap(parent)) parent.items = parent.items.filter((pair) => keyOf(pair) !== last)
  else (parent as YAMLSeq).items.splice(Number(last), 1)
  if (parent.items.length === 0) parent.flow = true
}
