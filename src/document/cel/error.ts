import type { EvaluationError, ParseError, TypeError as TypeCheckError } from '@marcbachmann/cel-js'

/** An expression that does not parse or type-check, costs too much or fails to evaluate; with the character position. */
export class CelError extends Error {
  override readonly name = 'CelError'
}

type LibraryError = ParseError | TypeCheckError | EvaluationError

/** Characters for the token names of the library. */
const tokens: Readonly<Record<string, string>> = {
  EOF: 'the end',
  LPAREN: '"("',
  RPAREN: '")"',
  LBRACKET: '"["',
  RBRACKET: '"]"',
  LBRACE: '"{"',
  RBRACE: '"}"',
  COLON: '":"',
  COMMA: '","',
  DOT: '"."',
}

/** Formats an error of the library in one line: the character position and the reason. */
export function celError(error: unknown, rename: (message: string) => string = (message) => message): CelError {
  if (error instanceof CelError) return error
  // The library and the runtime recurse once a level, so what remains too deep within the limits ends here.
  if (error instanceof RangeError && error.message.includes('call stack')) return new CelError('the expression is nested too deeply')
  const { code, message = String(error), summary = message, range } = error as Partial<LibraryError>
  const named = /^(un)?expected_token$/.test(code ?? '') ? summary.replaceAll(/[A-Z]{3,}/g, (token) => tokens[token] ?? token) : summary
  const line = rename(named).replaceAll(/[\n\r\t]+/g, ' ')
  const reason = line.charAt(0).toLowerCase() + line.slice(1)
  return new CelError(range ? `character ${range.start + 1}: ${reason}` : reason)
}
