/**
 * Parses YAML into documents that keep comments, order and positions.
 *
 * The input is untrusted: size, nesting and number of documents are bounded before anything is built from it, so hostile
 * input costs no more than reading it once. Scalars stay strings (schema "failsafe"); see `scalar.ts` for their types.
 */
import { Composer, type CST, type Document, Lexer, LineCounter, type ParsedNode, Parser } from 'yaml'
import { placeComments } from './comment-places.ts'
import { ConfigError } from './config-error.ts'

/** Limits of a YAML file. */
export interface Limits {
  bytes: number
  depth: number
  documents: number
  /** Tokens, including white space: they determine the memory that parsing takes. */
  tokens: number
}

/** Limits of a machine configuration: far beyond what people write, small enough for a machine. */
export const configLimits: Limits = { bytes: 4 * 1024 * 1024, depth: 64, documents: 1000, tokens: 200_000 }

/** Options for parsing and writing YAML everywhere in this room. */
export const yamlOptions = { schema: 'failsafe', uniqueKeys: false, prettyErrors: false, keepSourceTokens: false, strict: true } as const

/** One document of the `yaml` package. */
export type YamlDocument = Document.Parsed<ParsedNode, true>

/** The documents of a file, and its line counter. */
export interface Stream {
  text: string
  documents: YamlDocument[]
  lines: LineCounter
}

/** Parses any number of documents. Throws ConfigError with the first syntax error. */
export function parseStream(input: string | Uint8Array, limits: Limits = configLimits): Stream {
  const size = typeof input === 'string' ? Buffer.byteLength(input) : input.length
  if (size > limits.bytes) {
    throw new ConfigError([{ message: `configuration is too large: ${size} bytes where ${limits.bytes} are allowed` }])
  }
  const text = typeof input === 'string' ? input : decodeText(input)
  const control = /(?![\t\n\r])\p{Cc}/u.exec(text)
  if (control)
    throw new ConfigError([{ ...place(text, control.index), message: `control character 0x${hex(control[0])} is not allowed in YAML` }])
  const lines = new LineCounter()
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  const composer = new Composer<ParsedNode, true>(yamlOptions)
  const documents: YamlDocument[] = []
  const take = (document: Document.Parsed<ParsedNode, true>) => {
    if (documents.push(document as YamlDocument) > limits.documents) {
      throw new ConfigError([{ message: `more than ${limits.documents} documents` }])
    }
  }
  const compose = (token: CST.Token) => {
    placeComments(token)
    for (const document of composer.next(token)) take(document)
  }
  let tokens = 0
  for (const lexeme of new Lexer().lex(text)) {
    if (++tokens > limits.tokens)
      throw new ConfigError([{ ...positionOf(lines, parser.offset), message: `more than ${limits.tokens} words and marks` }])
    for (const token of parser.next(lexeme)) compose(token)
    // the size of the parser's stack is the current nesting
    if ((parser as unknown as { stack: unknown[] }).stack.length > limits.depth) {
      throw new ConfigError([{ ...positionOf(lines, parser.offset), message: `nested more than ${limits.depth} levels deep` }])
    }
  }
  for (const token of parser.end()) compose(token)
  for (const document of composer.end(false, text.length)) take(document)
  // Errors after the first one are mostly caused by it.
  const [first] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]).sort((a, b) => a.pos[0] - b.pos[0])
  if (first) throw new ConfigError([{ ...positionOf(lines, first.pos[0]), message: wording(first.code, first.message) }])
  return { text, documents, lines }
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    throw new ConfigError([{ message: 'not a text: the bytes are not UTF-8' }])
  }
}

/** Line and column, both from 1, of an offset. */
export function positionOf(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset)
  return { line: Math.max(line, 1), column: Math.max(col, 1) }
}

function place(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, '0')

const wordings: Record<string, string> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or tag of its own',
  BAD_ALIAS: 'an alias needs a name that was anchored before',
  BAD_COLLECTION_TYPE: 'the tag does not fit what follows it',
  BAD_DIRECTIVE: 'a directive that YAML does not know',
  BAD_DQ_ESCAPE: 'an escape that double-quoted text does not know',
  BAD_INDENT: 'indented less, or otherwise, than what it belongs to',
  BAD_PROP_ORDER: 'an anchor or tag at a place where it cannot be',
  BAD_SCALAR_START: 'an unquoted text cannot begin with this character',
  BLOCK_AS_IMPLICIT_KEY: 'a map or list cannot begin on the line of another key',
  BLOCK_IN_FLOW: 'an indented map or list inside brackets',
  COMMENT_SPACE: 'a comment needs a space before its "#"',
  IMPOSSIBLE: 'not YAML',
  KEY_OVER_1024_CHARS: 'a key longer than 1024 characters, or a ":" is missing',
  MISSING_CHAR: 'something that was opened is not closed: the text may be cut off',
  MULTILINE_IMPLICIT_KEY: 'a key spans several lines: a ":" is missing, or a quote is not closed',
  MULTIPLE_ANCHORS: 'more than one anchor',
  MULTIPLE_DOCS: 'more than one document',
  MULTIPLE_TAGS: 'more than one tag',
  TAB_AS_INDENT: 'a tab is used for indentation: use spaces',
  TAG_RESOLVE_FAILED: 'a tag that is not known here',
  UNEXPECTED_TOKEN: 'unexpected text',
}

const wording = (code: string, message: string) => `${wordings[code] ?? 'not YAML'} (${message.split('\n')[0]})`
