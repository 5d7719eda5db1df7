/**
 * Command lines of the Kubernetes components: the system's flags, merged with the operator's. Each flag has a policy: the
 * operator may replace it, add to its list, or not change it.
 */

/** What the operator may do with a flag of the system. */
export type Policy = 'overwrite' | 'additive' | 'denied'

/** The system's value of a flag and its policy; no value means that only the policy is set. */
export interface Flag {
  value?: string | readonly string[] | undefined
  policy: Policy
}

/** Flags as the operator gives them: each with one value or several. */
export type ExtraArgs = Readonly<Record<string, { values: readonly string[] }>>

/** The operator set a flag that only the system may set. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError'
}

/** Merges both into `--name=value`, sorted by name. Throws ArgumentError for a denied flag. */
export function buildArguments(component: string, ours: Readonly<Record<string, Flag>>, theirs: ExtraArgs = {}): string[] {
  const values = new Map<string, readonly string[]>()
  for (const [name, { value }] of Object.entries(ours)) if (value !== undefined) values.set(name, [joined(value)])
  for (const [name, { values: given }] of Object.entries(theirs)) {
    const policy = ours[name]?.policy ?? 'overwrite'
    if (policy === 'denied') throw new ArgumentError(`extra argument "${name}" of ${component} may not be set: remove it from extraArgs`)
    if (policy === 'additive') values.set(name, [addedTo(values.get(name)?.[0] ?? '', given)])
    else values.set(name, given)
  }
  return [...values.keys()].sort().flatMap((name) => (values.get(name) ?? []).map((value) => `--${name}=${value}`))
}

/** Shorthands for the tables of flags. */
export const overwrite = (value?: string | readonly string[]): Flag => ({ value, policy: 'overwrite' })
export const additive = (value?: string | readonly string[]): Flag => ({ value, policy: 'additive' })
export const denied = (value?: string | readonly string[]): Flag => ({ value, policy: 'denied' })

function joined(value: string | readonly string[]): string {
  return typeof value === 'string' ? value : value.join(',')
}

function addedTo(present: string, given: readonly string[]): string {
  const list = [present, ...given].flatMap((value) => value.split(',')).filter((entry) => entry !== '')
  return [...new Set(list)].join(',')
}
