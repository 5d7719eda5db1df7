import { RpcError, type StatusName } from '../../../rpc/status.ts'

/** Runs work that says what it does: its messages as they come, until it has ended. Throws what ended it, as a status. */
export async function* telling(work: (tell: (message: string) => void) => Promise<unknown>): AsyncGenerator<string, void> {
  const said: string[] = []
  let wake = () => {}
  let ended = false
  const running = work((message) => {
    said.push(message)
    wake()
  }).finally(() => {
    ended = true
    wake()
  })
  running.catch(() => {}) // thrown below
  while (!ended || said.length > 0) {
    const message = said.shift()
    if (message !== undefined) yield message
    else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  await running.catch((error) => {
    throw asStatus(error)
  })
}

const statuses: Readonly<Record<string, StatusName>> = {
  UpgradeRefused: 'FailedPrecondition',
  ReleaseError: 'FailedPrecondition',
  SlotError: 'FailedPrecondition',
  DiskOccupied: 'FailedPrecondition',
  DiskTooSmall: 'InvalidArgument',
  InstallDiskError: 'InvalidArgument',
}

/** What a caller is told of a failure. */
export function asStatus(error: unknown): Error {
  if (error instanceof RpcError || !(error instanceof Error)) return error as Error
  const status = statuses[error.name]
  return status ? new RpcError(status, error.message) : error
}
