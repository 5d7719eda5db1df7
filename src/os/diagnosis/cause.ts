/** Why something is missing or unhealthy: one step on the way from the explained subject to the root cause. */

/** The kind of cause. */
export type CauseKind = 'absent' | 'unhealthy' | 'failing' | 'service' | 'outside'

/** What a cause is about, for other code; `other` is something that is none of these, such as a file system. */
export type About =
  | { readonly kind: 'resource'; readonly type: string; readonly id: string }
  | { readonly kind: 'controller' | 'service' | 'component'; readonly name: string }
  | { readonly kind: 'other' }

/** One finding. */
export interface Cause {
  readonly kind: CauseKind
  readonly about: About
  /** Resource, controller or service, as users name it. */
  readonly subject: string
  /** One sentence. */
  readonly sentence: string
  /** Its own error message. */
  error?: string | undefined
  /** The errno name of the system call that failed. */
  readonly code?: string | undefined
  /** The part of the error that another program wrote: its last output, or what the kubelet reports of a container. */
  readonly output?: string | undefined
  /** Outside parties (`contacts`) that it, or what makes it, connects to. */
  readonly contacts?: readonly string[]
  readonly since?: Date | undefined
  /** Failures in a row. */
  readonly times?: number | undefined
  /** Steps from the explained subject. */
  readonly depth: number
  /** Subjects of the causes behind this one. */
  readonly because: string[]
  /** It does not fail by itself: it was only not created. */
  readonly quiet?: boolean
  /** Another machine that does not answer. */
  readonly silent?: boolean
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

/** The key of a controller, service or component among the causes, and its name for users. */
export const subjectOf = (kind: 'controller' | 'service' | 'component', name: string): string => `${kind} ${name}`

/** Whether a cause is about this service. */
export const isService = ({ about }: Pick<Cause, 'about'>, name: string): boolean => about.kind === 'service' && about.name === name
