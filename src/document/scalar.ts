/**
 * The types of unquoted scalars. The rules are those that existing configurations rely on: the YAML 1.2 core schema, octal
 * numbers also with a bare leading zero, and the old words for yes and no only where a boolean is expected.
 */

/** The value of an unquoted scalar where any type is allowed. */
export function plainValue(source: string): string | number | boolean | null {
  if (/^(|~|null|Null|NULL)$/.test(source)) return null
  if (/^(true|True|TRUE)$/.test(source)) return true
  if (/^(false|False|FALSE)$/.test(source)) return false
  return plainNumber(source) ?? source
}

/** The number of an unquoted scalar, if it is one. */
export function plainNumber(source: string): number | undefined {
  const text = source.replaceAll('_', '')
  if (!/^[-+.\d]/.test(text) || source.startsWith('_')) return undefined
  const whole = /^([-+]?)(0x[0-9a-fA-F]+|0o?[0-7]+|0b[01]+|0|[1-9]\d*)$/.exec(text)
  if (whole) {
    const [, sign, digits = ''] = whole
    const value = Number(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits)
    return sign === '-' ? -value : value
  }
  if (/^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/.test(text)) return Number(text)
  const special = /^([-+]?)\.(inf|Inf|INF)$/.exec(text)
  if (special) return special[1] === '-' ? -Infinity : Infinity
  return /^\.(nan|NaN|NAN)$/.test(text) ? Number.NaN : undefined
}

/** The boolean of an unquoted scalar where a boolean is expected. */
export function plainBoolean(source: string): boolean | undefined {
  if (/^(true|True|TRUE|y|Y|yes|Yes|YES|on|On|ON)$/.test(source)) return true
  if (/^(false|False|FALSE|n|N|no|No|NO|off|Off|OFF)$/.test(source)) return false
  return undefined
}

/** Whether a string can be written without quotes and parses as the same string. */
export function plainText(text: string): boolean {
  return typeof plainValue(text) === 'string' && plainBoolean(text) === undefined && /^[\w./][\w./@%+=-]*(:[\w./@%+=-]+)*$/.test(text)
}
