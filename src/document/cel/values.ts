/** Values of the runtime as values of the expression language, and the functions that come with types of variables. */
import { Duration, Environment, UnsignedInt } from '@marcbachmann/cel-js/evaluator'
import type { CelMessage, CelType } from './environment.ts'

/** The type of a duration; a variable of it is given in milliseconds. */
export const celDuration = 'google.protobuf.Duration'

/** Functions that an environment has as soon as a variable is of a type that begins so. */
const functionsByType: readonly (readonly [start: string, functions: readonly string[]])[] = [
  [celDuration, ['duration', 'getHours', 'getMinutes', 'getSeconds', 'getMilliseconds']],
  ['optional<', ['hasValue', 'value', 'or', 'orValue', 'of', 'none']],
]

const isOptional = (type: CelType | CelMessage): boolean => typeof type === 'string' && type.startsWith('optional<')

/** Whether variables of these types need the library's optional values. */
export const hasOptionals = (types: readonly (CelType | CelMessage)[]): boolean => types.some(isOptional)

/** The functions that come with variables of these types. */
export const functionsOf = (types: readonly (CelType | CelMessage)[]): string[] =>
  functionsByType.flatMap(([start, names]) => (types.some((type) => typeof type === 'string' && type.startsWith(start)) ? [...names] : []))

const zeros: Readonly<Record<string, unknown>> = { bool: false, string: '', int: 0, uint: 0, double: 0, bytes: new Uint8Array() }

let makeOptional: ((values: { value: unknown }) => unknown) | undefined

/** The library does not export its optional values, but its expressions return them. */
function optionalOf(value: unknown): unknown {
  makeOptional ??= new Environment({ enableOptionalTypes: true }).registerVariable('value', 'dyn').parse('optional.of(value)')
  return makeOptional({ value })
}

let none: unknown

/** Whether a variable has to be given: what is undefined is unknown to the expression, unless its type is optional. */
export const isGiven = (type: CelType | CelMessage, value: unknown): boolean => value !== undefined || isOptional(type)

/** A value of a variable for the library. */
export function toCel(type: CelType | CelMessage, value: unknown): unknown {
  if (typeof type !== 'string') {
    const message = value as Readonly<Record<string, unknown>>
    return Object.fromEntries(Object.entries(type).map(([field, each]) => [field, toCel(each, message[field])]))
  }
  if (isOptional(type)) {
    none ??= new Environment({ enableOptionalTypes: true }).parse('optional.none()')({})
    return value === undefined ? none : optionalOf(toCel(type.slice('optional<'.length, -1), value))
  }
  const present = value ?? zeros[type] ?? (type.startsWith('list') ? [] : value)
  if (type === 'uint' && typeof present === 'number') return new UnsignedInt(present)
  if (type === 'int' && typeof present === 'number') return BigInt(present)
  if (type === celDuration && typeof present === 'number') return Duration.fromMilliseconds(present)
  if (type.startsWith('map<int, ') && present instanceof Map) return new Map([...present].map(([key, each]) => [BigInt(key), each]))
  return present
}
