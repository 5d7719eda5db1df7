/** An image would not fit the format. */
export class SquashfsError extends Error {
  override name = 'SquashfsError'
}
