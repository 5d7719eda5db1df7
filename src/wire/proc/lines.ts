import { DecodeError } from '../decode-error.ts'

/** The largest input of any parser in this folder. */
const maxText = 16 << 20

/** A line of a kernel text file with its offset. */
export interface Line {
  text: string
  offset: number
}

/** The non-empty lines of a kernel text file, bounded in size and number. */
export function lines(what: string, text: string, limit = 1 << 18): Line[] {
  if (text.length > maxText) throw new DecodeError(what, maxText, 'text too long')
  const found: Line[] = []
  let offset = 0
  for (const line of text.split('\n')) {
    if (line !== '') {
      if (found.length === limit) throw new DecodeError(what, offset, 'too many lines')
      found.push({ text: line, offset })
    }
    offset += line.length + 1
  }
  return found
}

/** A decimal number; anything else is refused. */
export function decimal(what: string, text: string | undefined, offset: number): number {
  if (text === undefined || !/^-?\d{1,20}$/.test(text)) throw new DecodeError(what, offset, `"${text ?? ''}" is no number`)
  return Number(text)
}

/** A hexadecimal number without prefix. */
export function hexadecimal(what: string, text: string | undefined, offset: number): number {
  if (text === undefined || !/^[0-9a-fA-F]{1,16}$/.test(text))
    throw new DecodeError(what, offset, `"${text ?? ''}" is no hexadecimal number`)
  return Number.parseInt(text, 16)
}

/** The fields of a line, separated by blanks. */
export function fields(text: string): string[] {
  return text.trim().split(/\s+/)
}
