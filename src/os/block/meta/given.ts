/** Values of META that a boot medium hands over, in a variable of the kernel command line. */
import { gunzipSync } from 'node:zlib'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { DecodeError } from '../../../wire/decode-error.ts'

const variable = 'INSTALLER_META_BASE64='
/** Bytes of the values, unpacked. */
const limit = 256 << 10
const gzipMagic = [0x1f, 0x8b] as const

/** The values by tag of `talos.environment=INSTALLER_META_BASE64=…` on a kernel command line. Throws DecodeError. */
export function parseGivenMeta(commandLine: string): ReadonlyMap<number, string> {
  const given = parameterValues(parseCommandLine(commandLine), 'talos.environment').findLast((text) => text.startsWith(variable))
  if (given === undefined) return new Map()
  const encoded = given.slice(variable.length)
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) throw new DecodeError(variable, 0, 'no base64')
  const values = new Map<number, string>()
  for (const part of unpacked(bytes).toString('utf8').split(';')) {
    if (part === '') continue
    const [, key = '', value = ''] = /^0x([0-9a-f]{1,2})=(.*)$/is.exec(part) ?? []
    if (key === '') throw new DecodeError(variable, 0, `"${part.slice(0, 32)}" is not "0xTAG=value"`)
    values.set(Number.parseInt(key, 16), value)
  }
  return values
}

function unpacked(bytes: Buffer): Buffer {
  if (bytes[0] !== gzipMagic[0] || bytes[1] !== gzipMagic[1]) return bytes
  try {
    return gunzipSync(bytes, { maxOutputLength: limit })
  } catch {
    throw new DecodeError(variable, 0, `not compressed with gzip, or of more than ${limit} bytes`)
  }
}
