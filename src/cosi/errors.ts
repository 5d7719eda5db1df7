/** The reason of a StoreError. */
export type StoreReason = 'not-found' | 'conflict' | 'exists' | 'owner' | 'phase' | 'finalizers' | 'invalid' | 'overrun'

/** Thrown by the store; callers branch on `reason`, the message is for people. */
export class StoreError extends Error {
  constructor(
    readonly reason: StoreReason,
    message: string,
  ) {
    super(message)
    this.name = 'StoreError'
  }
}
