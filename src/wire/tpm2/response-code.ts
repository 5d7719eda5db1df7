/** Names of response codes (TPM 2.0 part 2, 6.6). */

/** Format 0, version 2: 0x100 and the number. */
const errors: Readonly<Record<number, string>> = {
  0: 'INITIALIZE',
  1: 'FAILURE',
  3: 'SEQUENCE',
  11: 'PRIVATE',
  25: 'HMAC',
  32: 'DISABLED',
  33: 'EXCLUSIVE',
  36: 'AUTH_TYPE',
  37: 'AUTH_MISSING',
  38: 'POLICY',
  39: 'PCR',
  40: 'PCR_CHANGED',
  45: 'UPGRADE',
  46: 'TOO_MANY_CONTEXTS',
  47: 'AUTH_UNAVAILABLE',
  48: 'REBOOT',
  49: 'UNBALANCED',
  66: 'COMMAND_SIZE',
  67: 'COMMAND_CODE',
  68: 'AUTHSIZE',
  69: 'AUTH_CONTEXT',
  70: 'NV_RANGE',
  71: 'NV_SIZE',
  72: 'NV_LOCKED',
  73: 'NV_AUTHORIZATION',
  74: 'NV_UNINITIALIZED',
  75: 'NV_SPACE',
  76: 'NV_DEFINED',
  80: 'BAD_CONTEXT',
  81: 'CPHASH',
  82: 'PARENT',
  83: 'NEEDS_TEST',
  84: 'NO_RESULT',
  85: 'SENSITIVE',
}

/** Format 0, warnings: 0x900 and the number. */
const warnings: Readonly<Record<number, string>> = {
  1: 'CONTEXT_GAP',
  2: 'OBJECT_MEMORY',
  3: 'SESSION_MEMORY',
  4: 'MEMORY',
  5: 'SESSION_HANDLES',
  6: 'OBJECT_HANDLES',
  7: 'LOCALITY',
  8: 'YIELDED',
  9: 'CANCELED',
  10: 'TESTING',
  32: 'NV_RATE',
  33: 'LOCKOUT',
  34: 'RETRY',
  35: 'NV_UNAVAILABLE',
}

/** Format 1: about a handle, a session or a parameter. */
const subjects: Readonly<Record<number, string>> = {
  1: 'ASYMMETRIC',
  2: 'ATTRIBUTES',
  3: 'HASH',
  4: 'VALUE',
  5: 'HIERARCHY',
  7: 'KEY_SIZE',
  8: 'MGF',
  9: 'MODE',
  10: 'TYPE',
  11: 'HANDLE',
  12: 'KDF',
  13: 'RANGE',
  14: 'AUTH_FAIL',
  15: 'NONCE',
  16: 'PP',
  18: 'SCHEME',
  21: 'SIZE',
  22: 'SYMMETRIC',
  23: 'TAG',
  24: 'SELECTOR',
  26: 'INSUFFICIENT',
  27: 'SIGNATURE',
  28: 'KEY',
  29: 'POLICY_FAIL',
  31: 'INTEGRITY',
  32: 'TICKET',
  33: 'RESERVED_BITS',
  34: 'BAD_AUTH',
  35: 'EXPIRED',
  36: 'POLICY_CC',
  37: 'BINDING',
  38: 'CURVE',
  39: 'ECC_POINT',
}

/** The name of a response code without `TPM_RC_`, undefined for one that has none. */
export function responseName(code: number): string | undefined {
  if ((code & 0x80) !== 0) return subjects[code & 0x3f]
  if ((code & 0xf00) === 0x900) return warnings[code & 0x7f]
  if ((code & 0xf00) === 0x100) return errors[code & 0x7f]
  return undefined
}

/** What a format 1 code is about, as in `parameter 1`; empty for other codes. */
function subjectOf(code: number): string {
  if ((code & 0x80) === 0) return ''
  const number = (code >> 8) & 0xf
  if ((code & 0x40) !== 0) return ` of parameter ${number}`
  return number >= 8 ? ` of session ${number - 8}` : ` of handle ${number}`
}

/** The TPM refused a command. */
export class TpmError extends Error {
  override readonly name = 'TpmError'

  constructor(
    readonly command: string,
    readonly code: number,
  ) {
    const known = responseName(code)
    const hex = `0x${code.toString(16)}`
    super(`TPM ${command}: ${known ? `TPM_RC_${known}${subjectOf(code)} (${hex})` : hex}`)
  }

  /** Whether it is the response code of this name, whatever it is about. */
  is(name: string): boolean {
    return responseName(this.code) === name
  }
}
