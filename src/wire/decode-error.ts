/** Malformed input: what was being decoded, and at which offset. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
  readonly what: string
  readonly offset: number

  constructor(what: string, offset: number, detail = '') {
    super(`decode ${what} at ${offset}${detail && `: ${detail}`}`)
    this.what = what
    this.offset = offset
  }
}
