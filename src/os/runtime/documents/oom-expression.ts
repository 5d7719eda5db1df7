/** The expressions of the out-of-memory handler: when memory is short, and which control group is killed first. */
import { CelEnvironment, type CelProgram, type CelType } from '../../../document/cel/environment.ts'
import { CelError } from '../../../document/cel/error.ts'
import { celDuration } from '../../../document/cel/values.ts'

/** Classes of control groups by importance; the least important is killed first. */
export const oomClasses = { Besteffort: 0, Burstable: 1, Guaranteed: 2, Podruntime: 3, System: 4 } as const

/** The number of a class. */
export type OomClass = (typeof oomClasses)[keyof typeof oomClasses]

/** Figures of memory pressure (PSI): averages in percent, totals in microseconds. */
export const pressureFigures = ['some', 'full'].flatMap((kind) =>
  ['avg10', 'avg60', 'avg300', 'total'].map((span) => `memory_${kind}_${span}`),
)

/** Bytes of a group, each in a file of its own. */
export const byteFigures = ['memory_current', 'memory_peak', 'memory_max']

/** Figures that are summed over the groups of a class: those of pressure, and bytes. */
export const classFigures = [...pressureFigures, ...byteFigures]

const deltaOf = (name: string) => `d_${name}`
const ofClasses = (name: string) => `qos_${name}`
const bothOf = (names: readonly string[]) => names.flatMap((name) => [name, deltaOf(name)])

/** Values of a trigger expression by variable: numbers, and numbers by class. */
export type TriggerValues = Readonly<Record<string, number | ReadonlyMap<number, number>>>

/** Values of a ranking expression; bytes. */
export interface RankingValues {
  readonly memory_max: number | undefined
  readonly memory_current: number | undefined
  readonly memory_peak: number | undefined
  readonly path: string
  readonly class: OomClass
}

const powers = (prefixes: readonly string[], base: bigint, suffix: string) =>
  prefixes.map((prefix, index) => [`${prefix}${suffix}`, base ** BigInt(index + 1)] as const)
const constants = Object.fromEntries([
  ...powers(['k', 'M', 'G', 'T', 'P', 'E'], 1000n, 'B'),
  ...powers(['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'], 1024n, 'B'),
])
const integers = Object.fromEntries(Object.entries(oomClasses).map(([name, number]) => [name, BigInt(number)]))

const vector = 'map<int, double>'
const typed = (names: readonly string[], type: CelType) => Object.fromEntries(names.map((name) => [name, type]))

const aboutPressure = new CelEnvironment({
  variables: {
    ...typed(bothOf(pressureFigures), 'double'),
    ...typed(bothOf(classFigures.map(ofClasses)), vector),
    time_since_trigger: celDuration,
  },
  constants,
  integers,
  functions: { [`multiply_qos_vectors(${vector}, ${vector}): double`]: multiplyVectors },
})

const aboutGroups = new CelEnvironment({
  variables: { ...typed(['memory_max', 'memory_current', 'memory_peak'], 'optional<uint>'), path: 'string', class: 'int' },
  constants,
  integers,
})

/** A map of an expression: a variable has integers as keys, a literal has strings. */
type Vector = ReadonlyMap<bigint, number> | Readonly<Record<string, number | bigint>>

const entriesOf = (vector: Vector): [number, number][] =>
  [...(vector instanceof Map ? vector : Object.entries(vector))].map(([key, value]) => [Number(key), Number(value)])

/** The sum of the products of values with the same key; keys of one map only are left out. */
function multiplyVectors(left: Vector, right: Vector): number {
  const factors = new Map(entriesOf(right))
  return entriesOf(left).reduce((sum, [key, value]) => sum + value * (factors.get(key) ?? 0), 0)
}

/** The trigger where a configuration gives none. */
export const defaultTrigger = [
  '(multiply_qos_vectors(d_qos_memory_full_total, {System: 8.0, Podruntime: 4.0}) > 3000.0',
  '&& multiply_qos_vectors(qos_memory_full_avg10, {System: 1.0, Podruntime: 1.0}) > 5.0',
  '&& time_since_trigger > duration("5s"))',
  '|| (memory_full_avg10 > 75.0 && time_since_trigger > duration("10s"))',
].join(' ')

/** The ranking where a configuration gives none: groups with a limit of their own are left to the kernel. */
export const defaultRanking = [
  'memory_max.hasValue() ? 0.0',
  ': {Besteffort: 1.0, Burstable: 0.5, Guaranteed: 0.0, Podruntime: 0.0, System: 0.0}[class]',
  '* double(memory_current.orValue(0u))',
].join(' ')

/** Compiles an expression that decides whether memory is short. Throws CelError. */
export const oomTrigger = (expression: string = defaultTrigger): CelProgram<boolean> => aboutPressure.condition(expression)

/** Whether a trigger expression may use bytes of a class; one that names none cannot. */
export const usesBytes = (expression: string = defaultTrigger): boolean => byteFigures.some((name) => expression.includes(name))

/** Compiles an expression that scores a control group: the highest is killed first, one of 0 or less never. Throws CelError. */
export function oomRanking(expression: string = defaultRanking): (values: RankingValues) => number {
  const program = aboutGroups.compile(expression, 'double') as CelProgram<number>
  return (values) => program({ ...values })
}

/** The error of an expression; undefined if it is valid. */
export function oomExpressionProblem(compile: (expression: string) => unknown, expression: string): string | undefined {
  try {
    compile(expression)
    return undefined
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    return error.message
  }
}
