import { describeRpcError, RpcError, type StatusName } from '../../rpc/status.ts'

/** An invalid command line: the message states what is missing and what to do. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** A command that did its work, reported the reason, and ends with this exit code. */
export class ExitCode extends Error {
  override name = 'ExitCode'
  constructor(readonly code: number) {
    super(`exit code ${code}`)
  }
}

/** Several nodes' failures as one, in the layout that scripts know. */
export class NodeErrors extends Error {
  override name = 'NodeErrors'
  /** `called` is how many nodes a fan-out called: the message then ends with a line that counts and names them. */
  constructor(
    readonly errors: readonly { node: string; error: Error }[],
    readonly called?: number,
  ) {
    super(
      `${errors.length} error${errors.length === 1 ? '' : 's'} occurred:\n${errors
        .map(({ node, error }) => `\t* ${node ? `${node}: ` : ''}${describe(error)}\n`)
        .join('')}${called === undefined ? '\n' : summary(errors, called)}`,
    )
  }
}

function summary(errors: readonly { node: string }[], called: number): string {
  return `${called - errors.length} of ${called} nodes answered; failed: ${errors.map(({ node }) => node).join(', ')}\n`
}

/** Whether a call, or the call to every node of several, failed with this status. */
export function failedWith(error: unknown, status: StatusName): boolean {
  if (error instanceof NodeErrors) return error.errors.every((one) => failedWith(one.error, status))
  return error instanceof RpcError && error.status === status
}

/** An error as one text for the user; failures of calls keep the shape that scripts match on. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error instanceof RpcError ? describeRpcError(error) : error.message
}
