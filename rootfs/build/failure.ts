import { messageOf } from '../../src/wire/error-message.ts'

/** Ends the build with what went wrong; only the unexpected shows where. */
export function failed(error: unknown): void {
  const known = error instanceof Error && error.constructor !== Error && error.name !== 'TypeError' && error.name !== 'ReferenceError'
  console.error(known ? `error: ${messageOf(error)}` : error)
  process.exitCode = 1
}

/** An impossible request; the message states what is possible. */
export class UsageError extends Error {
  override name = 'UsageError'
}
