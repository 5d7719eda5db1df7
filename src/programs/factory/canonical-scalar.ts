/** Scalars of the canonical YAML of schematics, styled as the emitter of the field styles them (gopkg.in/yaml.v3). */

/** A string at some indentation. A key never spans lines. */
export function canonicalString(text: string, indent: number, place: 'key' | 'value'): string {
  const { plain, single, block } = stylesOf(text)
  if (text.includes('\n')) return block && place === 'value' ? literal(text, indent) : double(text)
  if (text === '' || !isString(text)) return double(text)
  if (plain) return text
  return single ? `'${text.replaceAll("'", "''")}'` : double(text)
}

/** A number of an option. */
export function canonicalNumber(value: number): string {
  if (Number.isNaN(value)) return '.nan'
  if (!Number.isFinite(value)) return value < 0 ? '-.inf' : '.inf'
  if (Number.isSafeInteger(value)) return String(value)
  const [digits = '', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  // As "%g": exponents of two digits at least, from 1e-05 down and 1e+06 up.
  if (power >= -4 && power < 6) return value.toFixed(Math.max(0, digits.replace(/[-.]/g, '').length - 1 - power))
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

const special = new Set(['~', 'null', 'Null', 'NULL', 'true', 'True', 'TRUE', 'false', 'False', 'FALSE', '.nan', '.NaN', '.NAN'])
const formerBooleans = new Set('y Y yes Yes YES on On ON n N no No NO off Off OFF'.split(' '))
const base60 = /^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?$/
const date = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[Tt ]\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)?)?$/

/** Whether a plain scalar of this text is a string for readers of YAML 1.1 and 1.2. */
function isString(text: string): boolean {
  if (special.has(text) || formerBooleans.has(text) || /^[-+]?\.(?:inf|Inf|INF)$/.test(text)) return false
  if (!/^[-+.\d]/.test(text)) return true
  const bare = text.startsWith('.') ? text : text.replaceAll('_', '')
  if (/^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/.test(bare)) return !Number.isFinite(Number(bare))
  const whole = /^([-+]?)(0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.exec(bare)
  if (whole) return BigInt(whole[2] ?? '') > (whole[1] === '' ? 2n ** 64n - 1n : whole[1] === '-' ? 2n ** 63n : 2n ** 63n - 1n)
  if (base60.test(text)) return false
  const [, year, month, day] = date.exec(text) ?? []
  return year === undefined || !isDay(Number(year), Number(month), Number(day))
}

const isDay = (year: number, month: number, day: number) =>
  month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()

/** Characters that are escaped; those above the first plane are, too. */
const escaped = /[\p{Cc}\u2028\u2029\ufeff\ufffe\uffff"\\]|[\u{10000}-\u{10ffff}]/gu
const unprintable = /(?![\n\t])[\p{Cc}\ufeff\ufffe\uffff]|[\u{10000}-\u{10ffff}]/u

/** The styles that keep the text as it is. */
function stylesOf(text: string): { plain: boolean; single: boolean; block: boolean } {
  const breaks = /[\n\u2028\u2029]/.test(text)
  const spaced = / [\n\u2028\u2029]/.test(text)
  const tab = text.includes('\t')
  const other = unprintable.test(text)
  const indicated = /^(?:---|\.\.\.)|^[#,[\]{}&*!|>'"%@`]|^[-?](?=[ \t\n]|$)|:(?=[ \t\n]|$)|[ \t\n]#/.test(text)
  const quoted = !(spaced || tab || other || /[\n\u2028\u2029] /.test(text))
  return { plain: quoted && !breaks && !indicated && !/^ | $/.test(text), single: quoted, block: !(spaced || other || text.endsWith(' ')) }
}

function literal(text: string, indent: number): string {
  if (text === '\n') return '|4+'
  const hint = /^[ \n]/.test(text) ? '4' : ''
  const chomp = !text.endsWith('\n') ? '-' : text.endsWith('\n\n') ? '+' : ''
  // The emitter ends the line of the indicator with the first break of the text.
  const lines = text.replace(/\n$/, '').replace(/^\n/, '').split('\n')
  return `|${hint}${chomp}\n${lines.map((line) => (line === '' ? '' : `${' '.repeat(indent)}${line}`)).join('\n')}`
}

const escapes: Readonly<Record<string, string>> = {
  ...{ '\0': '0', '\x07': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', '\x1b': 'e', '"': '"' },
  ...{ '\\': '\\', '\x85': 'N', '\xa0': '_', '\u2028': 'L', '\u2029': 'P' },
}

function double(text: string): string {
  const escapeOf = (character: string) => {
    const short = escapes[character]
    if (short !== undefined) return `\\${short}`
    const code = character.codePointAt(0) ?? 0
    const digits = (length: number) => code.toString(16).toUpperCase().padStart(length, '0')
    return code <= 0xff ? `\\x${digits(2)}` : code <= 0xffff ? `\\u${digits(4)}` : `\\U${digits(8)}`
  }
  return `"${text.replace(escaped, escapeOf)}"`
}
