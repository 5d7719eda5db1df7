/** Why something is not there, or not well: one step of the way from what was asked for to its root. */

/** What kind of thing stands in the way. */
export type CauseKind = 'absent' | 'unwell' | 'failing' | 'service' | 'outside'

/** One finding. */
export interface Cause {
  readonly kind: CauseKind
  /** Resource, controller or service, as users name it. */
  readonly subject: string
  /** One sentence in plain words. */
  readonly sentence: string
  /** What it said itself. */
  error?: string
  readonly since?: Date
  /** Failures in a row. */
  readonly times?: number
  /** Steps from what was asked for. */
  readonly depth: number
  /** Subjects of the causes behind this one. */
  readonly because: string[]
  /** Nothing is wrong with it as such: it was simply not brought about. */
  readonly quiet?: boolean
  /** An operator has to decide something: it comes before all that may follow from it. */
  readonly urgent?: boolean
  /** The service whose log says why: one whose process ended. */
  readonly logOf?: string
}

/** What needs a decision first, then the deepest: what fails before what is merely not there, and what only follows last. */
export function deepestFirst(causes: readonly Cause[]): Cause[] {
  const weight = ({ because, quiet, urgent }: Cause) => (urgent ? -1 : because.length > 0 ? 2 : quiet ? 1 : 0)
  return [...causes].sort((a, b) => weight(a) - weight(b) || b.depth - a.depth || (a.subject < b.subject ? -1 : 1))
}
