/** Rules of `extraArgs`: the flags of the programs in the release configured, and the types of their values. */

import type { Reporter } from '../../../document/kind.ts'
import { nearest } from '../../../document/nearest.ts'
import type { Path } from '../../../document/path.ts'
import { parseDuration } from '../../../wire/duration.ts'
import { ownFlags } from './own-flags.ts'
import { type Program, type Settings, settings, settingsOf } from './settings.ts'

/** A component's settings in a configuration. */
interface Component {
  readonly image?: string | undefined
  readonly extraArgs?: Readonly<Record<string, string | readonly string[]>> | undefined
}

/**
 * Reports unknown flags and invalid values, with which the program would not start. The image decides about the release; for
 * releases whose flags are not known here, these are warnings.
 */
export function argumentRules(program: Program, component: Component | undefined, report: Reporter, path: Path): void {
  const { version, exact, settings } = judgedBy(program, component?.image)
  const known = settings.flags.get(program) ?? new Map<string, string>()
  for (const [key, value] of Object.entries(component?.extraArgs ?? {})) {
    const at = [...path, 'extraArgs', key]
    if (ownFlags[program]?.includes(flagOf(program, key))) {
      report.error(at, `the system sets the flag ${JSON.stringify(key)} of ${program} itself: remove it from extraArgs`)
      continue
    }
    const problem = problemOf(program, { flags: known, gates: settings.gates }, key, typeof value === 'string' ? [value] : value)
    if (!problem) continue
    if (exact) report.error(at, `${problem} of ${program} v${version}`)
    else report.warning(at, `${problem} of ${program} v${version}, whose flags are known here; the image configured may differ`)
  }
}

/** The settings by which a program is judged. */
interface Judgement {
  readonly settings: Settings
  /** The release that has them, as in `1.35.4`. */
  readonly version: string
  /** Whether that is the release of the image, as far as its tag shows. */
  readonly exact: boolean
}

/** The settings of the release that an image's tag names, else of its minor, else of the release inside, which no image means. */
export function judgedBy(program: Program, image: string | undefined): Judgement {
  const [name = ''] = (image ?? '').split('@')
  const tag = (/:([^/:]+)$/.exec(name)?.[1] ?? '').replace(/^v/, '').split('-')[0] ?? ''
  const found = (program === 'etcd' ? undefined : settingsOf(tag)) ?? settings()
  const version = found.versions.get(program === 'etcd' ? 'etcd' : 'kubernetes') ?? ''
  return { settings: found, version, exact: !image || tag === version }
}

/** The flag a key stands for: Kubernetes accepts underscores for dashes, etcd does not. */
const flagOf = (program: Program, key: string): string => (program === 'etcd' ? key : key.replaceAll('_', '-'))

function problemOf(
  program: Program,
  { flags, gates }: { flags: ReadonlyMap<string, string>; gates: ReadonlySet<string> },
  key: string,
  values: readonly string[],
): string | undefined {
  const name = flagOf(program, key)
  const type = flags.get(name)
  if (type === undefined) {
    const guess = nearest(name.replace(/^-+/, ''), flags.keys())
    return `${JSON.stringify(key)} is not a flag${guess ? ` (did you mean ${JSON.stringify(guess)}?)` : ''}`
  }
  const wrong = values.find((value) => !fits(type, value))
  if (wrong !== undefined) return `${JSON.stringify(wrong)} is not ${wanted(type)} for the flag ${JSON.stringify(key)}`
  if (name !== 'feature-gates' || program === 'etcd') return undefined
  return values.map((value) => gateProblem(gates, value)).find((problem) => problem !== undefined)
}

const words = new Set(['1', 't', 'T', 'TRUE', 'true', 'True', '0', 'f', 'F', 'FALSE', 'false', 'False'])

/** Whether Go's parser for flags of a type accepts a value; types other than numbers, durations and enumerations are left to the program. */
function fits(type: string, value: string): boolean {
  if (type === 'bool') return words.has(value)
  if (type === 'duration') return parseDuration(value) !== undefined
  if (type === 'Level') return inRange(value, true, 32)
  if (/^float\d\d$/.test(type)) return value.trim() !== '' && !Number.isNaN(Number(value))
  const integer = /^(u?)int(\d\d)?(Value)?$/.exec(type)
  return integer ? inRange(value, integer[1] === '', Number(integer[2] ?? 64)) : true
}

function inRange(value: string, signed: boolean, bits: number): boolean {
  const match = /^([+-]?)(0x[0-9a-f]+|0b[01]+|0o?[0-7]+|[1-9]\d*|0)$/i.exec(value.replaceAll('_', ''))
  const [, sign, written = ''] = match ?? []
  if (!match || (sign && !signed)) return false
  const digits = written.replace(/^0(?=[0-7])/, '0o')
  const amount = sign === '-' ? -BigInt(digits) : BigInt(digits)
  const [least, most] = signed ? [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n] : [0n, 2n ** BigInt(bits) - 1n]
  return amount >= least && amount <= most
}

function wanted(type: string): string {
  if (type === 'bool') return 'true or false'
  if (type === 'duration') return 'a duration, like "30s",'
  return type.startsWith('float') ? 'a number' : 'a whole number in the range'
}

/** `Name=true,Other=false`; a part may name its component: `kube:Name=true`. */
function gateProblem(gates: ReadonlySet<string>, value: string): string | undefined {
  for (const pair of value.split(',').filter((each) => each.trim() !== '')) {
    const [name = '', on] = pair.trim().split('=')
    const gate = name.slice(name.lastIndexOf(':') + 1).trim()
    const problem =
      featureGateProblem(gates, gate) ??
      (words.has(on?.trim() ?? '') ? undefined : `${JSON.stringify(pair)} is not the "Name=true" of a feature gate`)
    if (problem) return problem
  }
  return undefined
}

/** Why a feature gate cannot be set in a release that has these; undefined when it can. */
export function featureGateProblem(gates: ReadonlySet<string>, name: string): string | undefined {
  if (gates.has(name)) return undefined
  const guess = nearest(name, gates)
  return `${JSON.stringify(name)} is not a feature gate${guess ? ` (did you mean ${JSON.stringify(guess)}?)` : ''}`
}
