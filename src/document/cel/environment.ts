/**
 * Expressions in the Common Expression Language (github.com/google/cel-spec) over declared variables. The language is
 * implemented by the library cel-js. Expressions come from configurations, so this module adds limits on length, depth and
 * cost, allows only functions of the language and of its environment, runs patterns in linear time, and enforces the types of
 * the official implementation.
 */
import type { ASTNode, ParseResult } from '@marcbachmann/cel-js'
import { Environment, UnsignedInt } from '@marcbachmann/cel-js/evaluator'
import { messageOf } from '../../wire/error-message.ts'
import { Re2 } from '../../wire/re2/re2.ts'
import { costOf, type Extent, extentOf, extentOfType } from './cost.ts'
import { CelError, celError } from './error.ts'
import { loops, operandsOf, walk } from './syntax.ts'
import { functionsOf, hasOptionals, isGiven, toCel } from './values.ts'

/** A type of the language: `uint`, `string`, `list<string>`. */
export type CelType = string

/** A message: its fields and their types. */
export type CelMessage = Readonly<Record<string, CelType>>

/** Variables, constants and functions of an environment. */
export interface CelDeclarations {
  readonly variables: Readonly<Record<string, CelType | CelMessage>>
  /** Constants of type uint. */
  readonly constants?: Readonly<Record<string, bigint>>
  /** Constants of type int. */
  readonly integers?: Readonly<Record<string, bigint>>
  /** Functions by signature: `mac(bytes): string`. */
  readonly functions?: Readonly<Record<string, (...args: never[]) => unknown>>
}

/** A compiled expression: evaluates values of variables. Throws CelError on failure. */
export type CelProgram<Value = unknown> = (values: Readonly<Record<string, unknown>>) => Value

const longest = 4096
const limits = { maxAstNodes: 1000, maxDepth: 48, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 8 }
/** Steps of one evaluation: tenths of a second. */
const mostSteps = 5_000_000

/** Functions of the language that every environment has (values.ts adds those of some types); the library has more. */
const standard = [
  ...['has', 'size', 'contains', 'startsWith', 'endsWith', 'matches'],
  ...['bool', 'bytes', 'double', 'dyn', 'int', 'string', 'type', 'uint'],
  ...loops,
]

/** `has` for a field of a message: whether it differs from the zero value. The name is as long as `has`, so that positions stay. */
const hasField = 'set'
/** `matches` in linear time. */
const linearMatches = 'matchesRe2'
const isPresent: Readonly<Record<string, (value: never) => boolean>> = {
  bool: (value: boolean) => value,
  string: (value: string) => value !== '',
  int: (value: bigint) => value !== 0n,
  uint: (value: UnsignedInt) => value.value !== 0n,
  double: (value: number) => value !== 0,
  bytes: (value: Uint8Array) => value.length > 0,
  list: (value: readonly unknown[]) => value.length > 0,
}
const compared = new Set(['<', '<=', '>', '>='])
const sync = { async: false }

/** Compiles expressions over declared variables. The environment of the library takes milliseconds, so it is created at first use. */
export class CelEnvironment {
  readonly #functions: ReadonlySet<string>
  #made: Environment | undefined

  constructor(readonly declarations: CelDeclarations) {
    const own = Object.keys(declarations.functions ?? {}).map((signature) => signature.replace(/\(.*/s, ''))
    this.#functions = new Set([...standard, ...functionsOf(Object.values(declarations.variables)), ...own])
  }

  get #environment(): Environment {
    this.#made ??= this.#make()
    return this.#made
  }

  #make(): Environment {
    const { variables, constants = {}, integers = {}, functions = {} } = this.declarations
    const enableOptionalTypes = hasOptionals(Object.values(variables))
    const environment = new Environment({ homogeneousAggregateLiterals: false, enableOptionalTypes, limits })
    for (const [name, type] of Object.entries(variables)) {
      if (typeof type === 'string') environment.registerVariable(name, type)
      else environment.registerType(messageName(name), { schema: { ...type } }).registerVariable(name, messageName(name))
    }
    for (const [name, value] of Object.entries(constants)) environment.registerConstant(name, 'uint', new UnsignedInt(value))
    for (const [name, value] of Object.entries(integers)) environment.registerConstant(name, 'int', value)
    for (const [signature, run] of Object.entries(functions))
      environment.registerFunction(signature, run as (...args: unknown[]) => unknown, sync)
    environment.registerFunction('int(uint): int', ({ value }: UnsignedInt) => toInt(value), sync)
    environment.registerFunction('matches(string, string): bool', matches, sync)
    environment.registerFunction(`string.${linearMatches}(string): bool`, matches, sync)
    for (const [type, run] of Object.entries(isPresent)) environment.registerFunction(`${hasField}(${type}): bool`, run, sync)
    return environment
  }

  /** Compiles an expression of the given type. Throws CelError. */
  compile(text: string, type: CelType = 'bool'): CelProgram {
    if (text.length > longest) throw new CelError(`an expression of ${text.length} characters is longer than ${longest}`)
    try {
      const { ast } = this.#environment.parse(text)
      const program = this.#checked(this.#examine(text, ast), type)
      this.#bound(
        ast,
        this.#extents((type) => extentOfType(type)),
      )
      return (values) => this.#run(program, ast, values)
    } catch (error) {
      throw celError(error, unrenamed)
    }
  }

  /** Compiles a boolean expression. Throws CelError. */
  condition(text: string): CelProgram<boolean> {
    return this.compile(text) as CelProgram<boolean>
  }

  #checked(text: string, type: CelType): ParseResult {
    const program = this.#environment.parse(text)
    walk(program.ast, useLinearMatches)
    const { valid, type: found = '', error } = program.check()
    if (!valid) throw error
    walk(program.ast, refuseMixedComparison)
    if (type !== 'dyn' && found !== type) throw new CelError(`the expression is of type ${found}, not ${type}`)
    return program
  }

  /** Refuses functions that only the library has; returns the source with `has` of fields renamed. */
  #examine(text: string, ast: ASTNode): string {
    let renamed = text
    walk(ast, (node, bound) => {
      const isMessage = (name: string) => !bound.has(name) && typeof this.declarations.variables[name] === 'object'
      if (node.op === '[]' && node.args[0].op === 'id' && isMessage(node.args[0].args))
        throw new CelError(`character ${node.start + 1}: fields of "${node.args[0].args}" are named after a dot`)
      if (node.op !== 'call' && node.op !== 'rcall') return
      const [name] = node.args
      if (!this.#functions.has(name)) throw new CelError(`character ${node.start + 1}: there is no function "${name}"`)
      if (name !== 'has' || node.op !== 'call') return
      const [field] = node.args[1]
      if (field?.op !== '.' || field.args[0].op !== 'id' || !isMessage(field.args[0].args)) return
      renamed = `${renamed.slice(0, node.start)}${hasField}${renamed.slice(node.start + hasField.length)}`
    })
    return renamed
  }

  #run(program: ParseResult, ast: ASTNode, values: Readonly<Record<string, unknown>>): unknown {
    try {
      this.#bound(
        ast,
        this.#extents((_, value) => extentOf(value), values),
      )
      const given = Object.entries(this.declarations.variables).filter(([name, type]) => isGiven(type, values[name]))
      return program(Object.fromEntries(given.map(([name, type]) => [name, toCel(type, values[name])])))
    } catch (error) {
      throw celError(error, unrenamed)
    }
  }

  #extents(of: (type: CelType, value: unknown) => Extent, values: Readonly<Record<string, unknown>> = {}): Map<string, Extent> {
    const extents = Object.entries(this.declarations.variables).map(([name, type]): [string, Extent] => {
      if (typeof type === 'string') return [name, of(type, values[name])]
      const message = values[name] as Readonly<Record<string, unknown>> | undefined
      const fields = Object.entries(type).map(([field, each]) => [field, of(each, message?.[field])])
      return [name, { size: 1, fields: Object.fromEntries(fields) }]
    })
    return new Map(extents)
  }

  #bound(ast: ASTNode, extents: ReadonlyMap<string, Extent>): void {
    const steps = costOf(ast, extents)
    if (steps > mostSteps) throw new CelError(`the expression takes up to ${steps.toPrecision(2)} steps, ${mostSteps} are allowed`)
  }
}

const messageName = (variable: string) => variable.charAt(0).toUpperCase() + variable.slice(1)

/** The library's `matches` uses the runtime's backtracking engine and cannot be replaced, so calls are renamed. */
function useLinearMatches(node: ASTNode): void {
  if ((node.op !== 'rcall' && node.op !== 'call') || node.args[0] !== 'matches') return
  const [, pattern] = operandsOf(node)
  if (pattern?.op === 'value' && typeof pattern.args === 'string') compilePattern(pattern.args, pattern.start)
  if (node.op === 'rcall') node.args[0] = linearMatches
}

const unrenamed = (message: string) => message.replaceAll(linearMatches, 'matches').replaceAll(`'${hasField}(`, "'has(")

/** The library compares numbers of different types; the official type checker refuses that. */
function refuseMixedComparison(node: ASTNode): void {
  if (!compared.has(node.op)) return
  const [left, right] = (node.args as ASTNode[]).map((operand) => (operand as { checkedType?: { name: string } }).checkedType?.name)
  if (left === right || left === 'dyn' || right === 'dyn') return
  throw new CelError(`character ${node.start + 1}: no such overload: ${left} ${node.op} ${right}`)
}

let lastPattern: Re2 | undefined

function compilePattern(pattern: string, start?: number): Re2 {
  if (lastPattern?.pattern === pattern) return lastPattern
  try {
    lastPattern = new Re2(pattern)
    return lastPattern
  } catch (error) {
    const reason = messageOf(error)
    throw new CelError(start === undefined ? reason : `character ${start + 1}: ${reason}`)
  }
}

const matches = (text: string, pattern: string): boolean => compilePattern(pattern).test(text)

function toInt(value: bigint): bigint {
  if (value > 2n ** 63n - 1n) throw new CelError(`int(${value}u): too large`)
  return value
}
