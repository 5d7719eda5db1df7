/** Bytes or text from outside that are not what they should be: what was being read, and where. */
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
