/**
 * Estimates the cost of an expression before it runs: an upper bound of its steps from the sizes of its variables, as the
 * official implementation does. A step is one evaluated node, or one character or element that is read or copied. Loops
 * multiply, and what they build is as large as its parts, so the bound covers nested loops and growing strings.
 */
import type { ASTNode } from '@marcbachmann/cel-js'
import { longestProgram, Re2 } from '../../wire/re2/re2.ts'
import { loopOf, operandsOf } from './syntax.ts'

/** The maximum size of a value: characters, bytes or elements; `element` is the largest element, `fields` those of a message. */
export interface Extent {
  readonly size: number
  readonly element?: Extent
  readonly fields?: Readonly<Record<string, Extent>>
}

/** Extents of the variables by name. */
export type Extents = ReadonlyMap<string, Extent>

const scalar: Extent = { size: 1 }
/** Functions that return a boolean, a number or a type. */
const scalarFunctions = new Set(['has', 'size', 'startsWith', 'endsWith', 'bool', 'double', 'int', 'type', 'uint'])
/** Maximum length of a number as a string. */
const longestNumber = 32

/** Operations that can fail: a loop continues after an error, and the library formats its message with the source around it. */
const fallible = new Set(['[]', '[?]', '+', '-', '*', '/', '%', '-_', 'call', 'rcall'])
const failure = { steps: 32, charactersAStep: 64 }

/** Assumed sizes where no value is known yet; the bound is checked again with the actual ones. */
const presumed = { characters: 256, elements: 64 }

/** The assumed extent of a value of a type. */
export function extentOfType(type: string): Extent {
  if (type === 'string' || type === 'bytes') return { size: presumed.characters }
  if (/^(list|map)\b|^dyn$/.test(type)) return { size: presumed.elements, element: { size: presumed.characters } }
  return scalar
}

/** The extent of a value. */
export function extentOf(value: unknown): Extent {
  if (typeof value === 'string' || value instanceof Uint8Array) return { size: value.length }
  if (Array.isArray(value)) return { size: value.length, element: widestOf(value.map(extentOf)) }
  if (value instanceof Map) return { size: value.size, element: widestOf([...value].flat().map(extentOf)) }
  return scalar
}

interface Estimate {
  readonly steps: number
  readonly extent: Extent
}

/** The maximum number of steps of an expression with variables of these extents. */
export const costOf = (node: ASTNode, variables: Extents): number => estimate(node, variables).steps

function estimate(node: ASTNode, variables: Extents): Estimate {
  const loop = loopOf(node)
  if (loop) {
    const range = estimate(loop.range, variables)
    const inner = new Map(variables).set(loop.element, elementOf(range.extent))
    const bodies = loop.bodies.map((body) => estimate(body, inner))
    const round = 1 + sum(bodies.map(({ steps }) => steps))
    const built = { size: range.extent.size, element: bodies.at(-1)?.extent ?? scalar }
    const extent = loop.name === 'map' ? built : loop.name === 'filter' ? listOf(range.extent) : scalar
    return { steps: range.steps + range.extent.size * round, extent }
  }
  const operands = operandsOf(node).map((operand) => estimate(operand, variables))
  const extents = operands.map(({ extent }) => extent)
  const { work, extent } = resultOf(node, extents, variables)
  const own = 1 + work + (fallible.has(node.op) ? failure.steps + node.input.length / failure.charactersAStep : 0)
  return { steps: own + sum(operands.map(({ steps }) => steps)), extent }
}

/** The work of a node besides its operands, and the extent of its value. */
function resultOf(node: ASTNode, operands: readonly Extent[], variables: Extents): { work: number; extent: Extent } {
  const [first = scalar, second = scalar] = operands
  switch (node.op) {
    case 'value':
      return { work: 0, extent: extentOf(node.args) }
    case 'id':
      return { work: 0, extent: variables.get(node.args) ?? scalar }
    case '.':
    case '.?':
      return { work: 0, extent: first.fields?.[node.args[1]] ?? elementOf(first) }
    case '[]':
    case '[?]':
      return { work: 0, extent: elementOf(first) }
    case 'list':
      return { work: operands.length, extent: { size: operands.length, element: widestOf(operands) } }
    case 'map':
      return { work: operands.length, extent: { size: operands.length / 2, element: widestOf(operands) } }
    case '?:':
      return { work: 0, extent: widestOf(operands.slice(1)) }
    case '+': {
      const size = first.size + second.size
      return { work: size, extent: { size, element: widest(elementOf(first), elementOf(second)) } }
    }
    case 'in':
      return { work: total(second) + second.size * total(first), extent: scalar }
    case 'call':
    case 'rcall':
      return callOf(node, operands)
    default:
      return { work: sum(operands.map(total)), extent: scalar }
  }
}

function callOf(node: ASTNode & { op: 'call' | 'rcall' }, operands: readonly Extent[]): { work: number; extent: Extent } {
  const all = sum(operands.map(total))
  const [first = scalar, second = scalar] = operands
  switch (node.args[0]) {
    case 'matches':
      return { work: (1 + first.size) * patternSize(operandsOf(node)[1]), extent: scalar }
    case 'contains':
    case 'glob':
      return { work: (1 + first.size) * (1 + second.size), extent: scalar }
    case 'dyn':
      return { work: 0, extent: first }
    default:
      // A character is at most four bytes, and so is a byte as a string.
      return { work: all, extent: scalarFunctions.has(node.args[0]) ? scalar : { size: Math.max(longestNumber, 4 * all) } }
  }
}

/** Cache of pattern sizes: an expression is estimated before each run, with the same patterns. */
const patternSizes = new WeakMap<ASTNode, number>()

/** Steps of a pattern per character. */
function patternSize(pattern: ASTNode | undefined): number {
  if (pattern?.op !== 'value' || typeof pattern.args !== 'string') return longestProgram
  const size = patternSizes.get(pattern) ?? new Re2(pattern.args).size
  patternSizes.set(pattern, size)
  return size
}

const elementOf = ({ element, fields }: Extent): Extent => element ?? widestOf(Object.values(fields ?? {}))
const listOf = (extent: Extent): Extent => ({ size: extent.size, element: elementOf(extent) })

/** The total size of a value with all its parts. */
function total({ size, element, fields }: Extent): number {
  return size * (element ? Math.max(1, total(element)) : 1) + sum(Object.values(fields ?? {}).map(total))
}

const widestOf = (extents: readonly Extent[]): Extent => extents.reduce(widest, scalar)

function widest(a: Extent, b: Extent): Extent {
  const element = a.element && b.element ? widest(a.element, b.element) : (a.element ?? b.element)
  const fields = a.fields ?? b.fields
  return { size: Math.max(a.size, b.size), ...(element && { element }), ...(fields && { fields }) }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
