/** What went wrong when talking to Kubernetes; `reason` is the API server's own word, or `Unreachable`, `Timeout`, `Malformed`. */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
  ) {
    super(message)
  }
}

/** Whether the API server says that the object is not there. */
export const isNotFound = (error: unknown): boolean => error instanceof KubeError && error.status === 404
