/** Why something is missing or unhealthy: one step on the way from the explained subject to the root cause. */

/** The kind of cause. */
export type CauseKind = 'absent' | 'unhealthy' | 'failing' | 'service' | 'outside'

/** One finding. */
export interface Cause {
  readonly kind: CauseKind
  /** Resource, controller or service, as users name it. */
  readonly subject: string
  /** One sentence. */
  readonly sentence: string
  /** Its own error message. */
  error?: string | undefined
  readonly since?: Date | undefined
  /** Failures in a row. */
  readonly times?: number | undefined
  /** Steps from the explained subject. */
  readonly depth: number
  /** Subjects of the causes behind this one. */
  readonly because: string[]
  /** It does not fail by itself: it was only not created. */
  readonly quiet?: boolean
  /** It needs a decision of an operator, so it comes before everything that may follow from it. */
  readonly urgent?: boolean
  /** The service whose log has the reason: its process exited. */
  readonly logOf?: string
}

/** Sorts urgent causes first, then the deepest: failures before missing things, and consequences last. */
export function deepestFirst(causes: readonly Cause[]): Cause[] {
  const weight = ({ because, quiet, urgent }: Cause) => (urgent ? -1 : because.length > 0 ? 2 : quiet ? 1 : 0)
  return [...causes].sort((a, b) => weight(a) - weight(b) || b.depth - a.depth || (a.subject < b.subject ? -1 : 1))
}
