/**
 * Expressions of the Common Expression Language (github.com/google/cel-spec), as far as selectors of links and disks
 * need it: literals, lists, fields, comparisons, logic, arithmetic, `in`, `? :`, and functions that are handed in.
 */

/** What an expression can be about and come to. */
export type CelValue = null | boolean | number | string | readonly CelValue[] | { readonly [key: string]: CelValue }

/** A function; called as a method, its first argument is what stands before the dot. */
export type CelFunction = (...args: CelValue[]) => CelValue

/** An expression that cannot be read, or has no value: what, and at which character. */
export class CelError extends Error {
  override readonly name = 'CelError'
}

/** A compiled expression. */
export type CelProgram = (variables: Readonly<Record<string, CelValue>>) => CelValue

type Node = (variables: Readonly<Record<string, CelValue>>) => CelValue

const longest = 4096
const deepest = 48

interface Token {
  kind: 'number' | 'text' | 'name' | 'sign' | 'end'
  text: string
  at: number
}

const pattern =
  /\s*(?:(0x[0-9a-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)u?|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|([A-Za-z_]\w*)|(==|!=|<=|>=|&&|\|\||[<>!+\-*/%?:.,()[\]]))/y

function tokens(text: string): Token[] {
  if (text.length > longest) throw new CelError(`an expression of ${text.length} characters is too long`)
  const found: Token[] = []
  const end = text.trimEnd().length
  pattern.lastIndex = 0
  while (pattern.lastIndex < end) {
    const begin = pattern.lastIndex
    const match = pattern.exec(text)
    if (!match)
      throw new CelError(`character ${begin + 1}: ${JSON.stringify(text.slice(begin).trimStart().slice(0, 10))} is not understood`)
    const [whole, number, quoted, name, sign] = match
    const kind = number !== undefined ? 'number' : quoted !== undefined ? 'text' : name !== undefined ? 'name' : 'sign'
    const word = number ?? quoted ?? name ?? sign ?? ''
    found.push({ kind, text: word, at: begin + whole.length - word.length + 1 })
  }
  found.push({ kind: 'end', text: 'the end', at: text.length + 1 })
  return found
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }
const unquoted = (text: string) => text.slice(1, -1).replaceAll(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter)

/** How tightly operators of two sides bind. */
const strength: Readonly<Record<string, number>> = {
  '||': 1,
  '&&': 2,
  in: 3,
  '==': 3,
  '!=': 3,
  '<': 3,
  '<=': 3,
  '>': 3,
  '>=': 3,
  '+': 4,
  '-': 4,
  '*': 5,
  '/': 5,
  '%': 5,
}

class Parser {
  readonly #tokens: Token[]
  readonly #functions: Readonly<Record<string, CelFunction>>
  #at = 0
  #depth = 0

  constructor(text: string, functions: Readonly<Record<string, CelFunction>>) {
    this.#tokens = tokens(text)
    this.#functions = functions
  }

  whole(): Node {
    const node = this.#expression()
    if (this.#next().kind !== 'end') throw this.#unexpected(-1)
    return node
  }

  #peek = () => this.#tokens[this.#at]!
  #next = () => this.#tokens[this.#at < this.#tokens.length - 1 ? this.#at++ : this.#at]!
  #is = (sign: string) => this.#peek().kind !== 'text' && this.#peek().text === sign

  #take(sign: string): boolean {
    if (!this.#is(sign)) return false
    this.#at++
    return true
  }

  #need(sign: string): void {
    if (!this.#take(sign)) throw new CelError(`character ${this.#peek().at}: "${sign}" is missing`)
  }

  #unexpected(back = 0): CelError {
    const { text, at } = this.#tokens[Math.max(0, this.#at + back)]!
    return new CelError(`character ${at}: ${JSON.stringify(text)} does not belong here`)
  }

  #expression(): Node {
    if (++this.#depth > deepest) throw new CelError('the expression is nested too deeply')
    const condition = this.#binary(1)
    this.#depth--
    if (!this.#take('?')) return condition
    const yes = this.#expression()
    this.#need(':')
    const no = this.#expression()
    return (variables) => (truth(condition(variables)) ? yes(variables) : no(variables))
  }

  #binary(least: number): Node {
    let left = this.#unary()
    for (;;) {
      const { text, kind } = this.#peek()
      const power = kind === 'sign' || text === 'in' ? strength[text] : undefined
      if (power === undefined || kind === 'text' || power < least) return left
      this.#at++
      left = operation(text, left, this.#binary(power + 1))
    }
  }

  #unary(): Node {
    if (++this.#depth > deepest) throw new CelError('the expression is nested too deeply')
    try {
      if (this.#take('!')) {
        const of = this.#unary()
        return (variables) => !truth(of(variables))
      }
      if (this.#take('-')) {
        const of = this.#unary()
        return (variables) => -amount(of(variables))
      }
      return this.#member()
    } finally {
      this.#depth--
    }
  }

  #member(): Node {
    let node = this.#primary()
    for (;;) {
      if (this.#take('.')) {
        const { kind, text: name } = this.#next()
        if (kind !== 'name') throw this.#unexpected(-1)
        node = this.#take('(') ? this.#call(name, [node, ...this.#list(')')]) : field(node, name)
      } else if (this.#take('[')) {
        const key = this.#expression()
        this.#need(']')
        node = element(node, key)
      } else return node
    }
  }

  #primary(): Node {
    const { kind, text } = this.#next()
    if (kind === 'number') {
      const value = Number(text)
      return () => value
    }
    if (kind === 'text') {
      const value = unquoted(text)
      return () => value
    }
    if (kind === 'name') {
      if (this.#take('(')) return this.#call(text, this.#list(')'))
      if (text === 'true' || text === 'false') return () => text === 'true'
      if (text === 'null') return () => null
      return (variables) => {
        if (!Object.hasOwn(variables, text)) throw new CelError(`"${text}" is not known here`)
        return variables[text]!
      }
    }
    if (kind === 'sign' && text === '(') {
      const node = this.#expression()
      this.#need(')')
      return node
    }
    if (kind === 'sign' && text === '[') {
      const items = this.#list(']')
      return (variables) => items.map((item) => item(variables))
    }
    throw this.#unexpected(kind === 'end' ? 0 : -1)
  }

  #list(end: string): Node[] {
    const items: Node[] = []
    if (this.#take(end)) return items
    do items.push(this.#expression())
    while (this.#take(','))
    this.#need(end)
    return items
  }

  #call(name: string, args: Node[]): Node {
    const own = Object.hasOwn(builtin, name) ? builtin[name] : Object.hasOwn(this.#functions, name) ? this.#functions[name] : undefined
    if (!own) throw new CelError(`there is no function "${name}"`)
    return (variables) => own(...args.map((arg) => arg(variables)))
  }
}

function truth(value: CelValue): boolean {
  if (typeof value !== 'boolean') throw new CelError(`${show(value)} is neither true nor false`)
  return value
}

function amount(value: CelValue): number {
  if (typeof value !== 'number') throw new CelError(`${show(value)} is not a number`)
  return value
}

function text(value: CelValue | undefined): string {
  if (typeof value !== 'string') throw new CelError(`${show(value ?? null)} is not a text`)
  return value
}

const show = (value: CelValue) => JSON.stringify(value)?.slice(0, 40) ?? 'nothing'

function field(node: Node, name: string): Node {
  return (variables) => {
    const value = node(variables)
    if (value === null || typeof value !== 'object' || Array.isArray(value) || !Object.hasOwn(value, name))
      throw new CelError(`there is no field "${name}"`)
    return (value as Record<string, CelValue>)[name]!
  }
}

function element(node: Node, key: Node): Node {
  return (variables) => {
    const [value, at] = [node(variables), key(variables)]
    const found = Array.isArray(value)
      ? value[amount(at)]
      : typeof value === 'object' && value !== null
        ? (value as Record<string, CelValue>)[text(at)]
        : undefined
    if (found === undefined) throw new CelError(`there is nothing at ${show(at)}`)
    return found
  }
}

function operation(sign: string, left: Node, right: Node): Node {
  if (sign === '&&') return (variables) => truth(left(variables)) && truth(right(variables))
  if (sign === '||') return (variables) => truth(left(variables)) || truth(right(variables))
  return (variables) => compute(sign, left(variables), right(variables))
}

function compute(sign: string, a: CelValue, b: CelValue): CelValue {
  switch (sign) {
    case '==':
      return Bun.deepEquals(a, b)
    case '!=':
      return !Bun.deepEquals(a, b)
    case 'in':
      if (Array.isArray(b)) return b.some((item) => Bun.deepEquals(item, a))
      if (b !== null && typeof b === 'object') return Object.hasOwn(b, text(a))
      throw new CelError(`${show(b)} is neither a list nor a map`)
    case '+':
      if (typeof a === 'string' && typeof b === 'string') return a + b
      if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b]
      return amount(a) + amount(b)
    case '-':
      return amount(a) - amount(b)
    case '*':
      return amount(a) * amount(b)
    case '/':
    case '%':
      if (amount(b) === 0) throw new CelError('division by zero')
      return sign === '%' ? amount(a) % amount(b) : Math.trunc(amount(a) / amount(b))
    default: {
      const [x, y] = typeof a === 'string' ? [a, text(b)] : [amount(a), amount(b)]
      return sign === '<' ? x < y : sign === '<=' ? x <= y : sign === '>' ? x > y : x >= y
    }
  }
}

/** Functions of the language itself. */
const builtin: Readonly<Record<string, CelFunction>> = {
  size(value = null) {
    if (typeof value === 'string' || Array.isArray(value)) return value.length
    if (value !== null && typeof value === 'object') return Object.keys(value).length
    throw new CelError(`${show(value)} has no size`)
  },
  startsWith: (value, start) => text(value).startsWith(text(start)),
  endsWith: (value, end) => text(value).endsWith(text(end)),
  contains: (value, part) => text(value).includes(text(part)),
  lowerAscii: (value) => text(value).toLowerCase(),
  upperAscii: (value) => text(value).toUpperCase(),
  /** Whether a text fits a pattern with `*` and `?`. */
  glob: (wanted, value) => new Bun.Glob(text(wanted)).match(text(value)),
  matches(value, expression) {
    try {
      return new RegExp(text(expression)).test(text(value).slice(0, 1024))
    } catch (error) {
      throw new CelError(error instanceof Error ? error.message : String(error))
    }
  },
  string: (value = null) => (typeof value === 'string' ? value : show(value)),
  int(value = null) {
    const number = Math.trunc(Number(value))
    if (!Number.isSafeInteger(number)) throw new CelError(`${show(value)} is not a number`)
    return number
  },
}

/** Compiles an expression; `functions` are those of its subject. Throws CelError. */
export function compileCel(expression: string, functions: Readonly<Record<string, CelFunction>> = {}): CelProgram {
  return new Parser(expression, functions).whole()
}

/** Whether an expression holds. Throws CelError when it comes to neither true nor false. */
export const celHolds = (program: CelProgram, variables: Readonly<Record<string, CelValue>>): boolean => truth(program(variables))
