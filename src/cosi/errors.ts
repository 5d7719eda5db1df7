import type { StatusName } from '../rpc/status.ts'
import { apiStatus } from '../wire/api-status.ts'

/** The reason of a StoreError. */
export type StoreReason = 'not-found' | 'conflict' | 'exists' | 'owner' | 'phase' | 'finalizers' | 'invalid' | 'overrun'

const statuses: Readonly<Record<StoreReason, StatusName>> = {
  'not-found': 'NotFound',
  exists: 'AlreadyExists',
  conflict: 'FailedPrecondition',
  phase: 'InvalidArgument',
  finalizers: 'FailedPrecondition',
  owner: 'PermissionDenied',
  invalid: 'InvalidArgument',
  overrun: 'FailedPrecondition',
}

/** Thrown by the store; callers branch on `reason`, the message is for people. */
export class StoreError extends Error {
  constructor(
    readonly reason: StoreReason,
    message: string,
  ) {
    super(message)
    this.name = 'StoreError'
  }

  get [apiStatus](): StatusName {
    return statuses[this.reason]
  }
}
