/** Rules of `machine.kubelet.extraConfig`: fields of the kubelet's configuration file, and the types of their values. */

import { show } from '../../../document/decode.ts'
import { isObject } from '../../../document/is-object.ts'
import type { Reporter } from '../../../document/kind.ts'
import { nearest } from '../../../document/nearest.ts'
import type { Path } from '../../../document/path.ts'
import { parseDuration } from '../../../wire/duration.ts'
import { featureGateProblem, judgedBy } from './arguments.ts'
import type { Field } from './settings.ts'

/** The release that a configuration is judged by, and where to report. */
interface Judge {
  report: Reporter['error']
  /** The release's configuration, as named in messages. */
  inside: string
  gates: ReadonlySet<string>
}

/**
 * Reports fields with which the kubelet would refuse to start. The image decides about the release; for releases whose fields are
 * not known here, these are warnings.
 */
export function kubeletFieldRules(extra: Readonly<Record<string, unknown>>, image: string | undefined, report: Reporter, path: Path): void {
  const { settings, version, exact } = judgedBy('kubelet', image)
  check(extra, { type: 'struct', fields: settings.kubelet }, path, {
    report: exact ? report.error : (at, message) => report.warning(at, `${message}; the kubelet image configured may differ`),
    inside: `the KubeletConfiguration of v${version}`,
    gates: settings.gates,
  })
}

function check(value: unknown, { type, fields }: Field, path: Path, judge: Judge): void {
  const [outer = '', ...rest] = type.split(':')
  const [fits, expected] = shapes[outer] ?? integer(outer)
  const within = { type: rest.join(':'), ...(fields && { fields }) }
  if (value === null) return
  if (!fits(value)) judge.report(path, `expected ${expected}, got ${show(value)}`)
  else if (outer === 'struct') checkFields(value as Mapping, fields ?? new Map(), path, judge)
  else if (outer === 'list') for (const [index, each] of (value as unknown[]).entries()) check(each, within, [...path, index], judge)
  else if (outer === 'map')
    for (const [key, each] of Object.entries(value as Mapping)) {
      const problem = path.at(-1) === 'featureGates' ? featureGateProblem(judge.gates, key) : undefined
      if (problem) judge.report([...path, key], problem)
      else check(each, within, [...path, key], judge)
    }
}

function checkFields(value: Mapping, fields: ReadonlyMap<string, Field>, path: Path, judge: Judge): void {
  for (const [key, each] of Object.entries(value)) {
    const field = fields.get(key)
    const guess = field ? undefined : nearest(key, fields.keys())
    if (field) check(each, field, [...path, key], judge)
    else
      judge.report(
        [...path, key],
        `unknown field ${show(key)}${guess ? ` (did you mean ${show(guess)}?)` : ''}: ${judge.inside} does not have it`,
      )
  }
}

type Mapping = Readonly<Record<string, unknown>>

type Shape = readonly [fits: (value: unknown) => boolean, expected: string]

const shapes: Readonly<Record<string, Shape>> = {
  struct: [isObject, 'a map'],
  map: [isObject, 'a map'],
  list: [Array.isArray, 'a list'],
  any: [() => true, 'anything'],
  bool: [(value) => typeof value === 'boolean', 'true or false'],
  string: [(value) => typeof value === 'string', 'a string'],
  duration: [(value) => typeof value === 'string' && parseDuration(value) !== undefined, 'a duration, like "30s"'],
  quantity: [(value) => typeof value === 'number' || (typeof value === 'string' && quantity.test(value)), 'a quantity, like "100Mi"'],
  float32: [(value) => typeof value === 'number', 'a number'],
  float64: [(value) => typeof value === 'number', 'a number'],
}

/** A quantity of Kubernetes (apimachinery/pkg/api/resource). */
const quantity = /^[+-]?(\d+(?:\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/

function integer(type: string): Shape {
  const unsigned = type.startsWith('u')
  const bits = Number(/\d+$/.exec(type)?.[0] ?? 64)
  const most = Math.min(2 ** (unsigned ? bits : bits - 1) - 1, Number.MAX_SAFE_INTEGER)
  const least = unsigned ? 0 : -most - 1
  const fits = (value: unknown) => typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
  return [fits, unsigned ? `a whole number from 0 to ${most}` : `a whole number of ${bits} bits`]
}
