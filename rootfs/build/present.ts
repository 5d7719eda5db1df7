/** Something that has to be there is not. */
export class MissingError extends Error {
  override name = 'MissingError'
}

/** A value that must be there; throws MissingError with the name of what is missing. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new MissingError(`${what} is missing`)
  return value
}
