/** What a form is; see spec-forms.ts for all of them. */
import type { Reader, Writer } from './wire.ts'

/** Writes and reads one form; `of` names the enum where there is one. */
export interface Form {
  readonly wire: number
  /** The default; such a value is not sent. */
  zero(of: string): unknown
  write(writer: Writer, value: never, of: string): void
  read(reader: Reader, of: string): unknown
}

/** Returns a parsed value. Throws for a value of the wrong form, which is a bug of the controller that wrote the spec. */
export function known<T>(value: T | undefined, text: string): T {
  if (value === undefined) throw new Error(`encode spec: "${text}" is not a valid value of its key`)
  return value
}
