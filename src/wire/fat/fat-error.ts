/** An operation that the file system does not allow. */
export class FatError extends Error {
  override name = 'FatError'

  constructor(
    readonly reason: 'full' | 'absent' | 'present' | 'kind',
    message: string,
  ) {
    super(message)
  }
}
