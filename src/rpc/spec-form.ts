/** What a form is: see spec-forms.ts for all of them. */
import type { Reader, Writer } from './wire.ts'

/** How one form is written and read; `of` names the enum where there is one. */
export interface Form {
  readonly wire: number
  /** What stands for nothing; such a value is not sent. */
  zero(of: string): unknown
  write(writer: Writer, value: never, of: string): void
  read(reader: Reader, of: string): unknown
}

/** A value that could be read. Throws for one that has not the form of its key: a mistake of whoever made the spec. */
export function known<T>(value: T | undefined, text: string): T {
  if (value === undefined) throw new Error(`encode spec: "${text}" has not the form of its key`)
  return value
}
