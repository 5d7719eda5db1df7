/** A request that the factory refuses: the status of the answer, and one line for its client. */
export class FactoryError extends Error {
  override name = 'FactoryError'
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 413 | 416 | 500 | 503 | 507,
    message: string,
  ) {
    super(message)
  }
}
