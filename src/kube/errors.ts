/** A failure of a Kubernetes call; `reason` is the API server's, or `Unreachable`, `Timeout`, `Malformed`. */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
    /** Details of the API server, such as the disruption budget that refuses an eviction. */
    readonly causes: readonly string[] = [],
  ) {
    super(message)
  }
}

/** Whether the API server reports that the object does not exist. */
export const isNotFound = (error: unknown): boolean => error instanceof KubeError && error.status === 404
