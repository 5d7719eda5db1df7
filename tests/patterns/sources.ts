/** Finds the regular expressions of TypeScript sources with the compiler's own scanner. */
import { SyntaxKind } from 'typescript/unstable/ast'
import { createScanner } from 'typescript/unstable/ast/scanner'

/** A regular expression literal. */
export interface Pattern {
  readonly file: string
  readonly line: number
  readonly source: string
  readonly flags: string
}

/** A regular expression that is compiled at run time. */
export interface Construction {
  readonly file: string
  readonly line: number
}

/** Tokens after which a slash divides; after all others it begins a literal. */
const operandEnds = new Set<SyntaxKind>([
  SyntaxKind.Identifier,
  SyntaxKind.PrivateIdentifier,
  SyntaxKind.NumericLiteral,
  SyntaxKind.BigIntLiteral,
  SyntaxKind.StringLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateTail,
  SyntaxKind.RegularExpressionLiteral,
  SyntaxKind.CloseParenToken,
  SyntaxKind.CloseBracketToken,
  SyntaxKind.CloseBraceToken,
  SyntaxKind.PlusPlusToken,
  SyntaxKind.MinusMinusToken,
  SyntaxKind.ThisKeyword,
  SyntaxKind.SuperKeyword,
  SyntaxKind.TrueKeyword,
  SyntaxKind.FalseKeyword,
  SyntaxKind.NullKeyword,
])

/** The literals and the run-time constructions of a source file. */
export function patternsOf(file: string, text: string): { literals: Pattern[]; constructions: Construction[] } {
  const scanner = createScanner(true, undefined, text)
  const literals: Pattern[] = []
  const constructions: Construction[] = []
  const substitutions: number[] = [] // depth of braces inside each open template substitution
  const lineAt = (position: number) => text.slice(0, position).split('\n').length
  let before: SyntaxKind = SyntaxKind.Unknown
  for (let token = scanner.scan(); token !== SyntaxKind.EndOfFile; token = scanner.scan()) {
    const dotted = before === SyntaxKind.DotToken
    const slash = token === SyntaxKind.SlashToken || token === SyntaxKind.SlashEqualsToken
    if (slash && (!operandEnds.has(before) || (before === SyntaxKind.CloseBraceToken && opensStatement(text, scanner.getTokenStart())))) {
      token = scanner.reScanSlashToken()
      const [, source = '', flags = ''] = /^\/(.*)\/([a-z]*)$/s.exec(scanner.getTokenText()) ?? []
      literals.push({ file, line: lineAt(scanner.getTokenStart()), source, flags })
    } else if (token === SyntaxKind.TemplateHead) substitutions.push(0)
    else if (token === SyntaxKind.OpenBraceToken && substitutions.length > 0) substitutions[substitutions.length - 1]!++
    else if (token === SyntaxKind.CloseBraceToken && substitutions.length > 0) {
      if (substitutions.at(-1) === 0) {
        token = scanner.reScanTemplateToken(false)
        if (token === SyntaxKind.TemplateTail) substitutions.pop()
      } else substitutions[substitutions.length - 1]!--
    } else if (token === SyntaxKind.Identifier && !dotted && scanner.getTokenText() === 'RegExp') {
      const next = /^\s*(?:<[^>]*>)?\(/.test(text.slice(scanner.getTokenEnd(), scanner.getTokenEnd() + 40))
      if (next) constructions.push({ file, line: lineAt(scanner.getTokenStart()) })
    }
    before = token
  }
  return { literals, constructions }
}

/** A slash at the beginning of a line after a closing brace begins a statement. */
const opensStatement = (text: string, at: number) => /\n\s*$/.test(text.slice(Math.max(0, at - 80), at))
