/** Why the store refused. */
export type StoreReason = 'not-found' | 'conflict' | 'exists' | 'owner' | 'phase' | 'finalizers' | 'invalid' | 'overrun'

/** What the store throws; `reason` is what callers branch on, the message is for people. */
export class StoreError extends Error {
  constructor(
    readonly reason: StoreReason,
    message: string,
  ) {
    super(message)
    this.name = 'StoreError'
  }
}
