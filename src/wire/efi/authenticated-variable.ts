/** Authenticated firmware variables, which only the holder of a key may write (UEFI 2.10, 8.2.2 EFI_VARIABLE_AUTHENTICATION_2). */
import { writeGuid } from '../gpt/guid.ts'

/** The variables of Secure Boot, with their vendor GUIDs (32.3, 32.6.1). */
export const secureBootVariables = {
  PK: '8be4df61-93ca-11d2-aa0d-00e098032b8c',
  KEK: '8be4df61-93ca-11d2-aa0d-00e098032b8c',
  db: 'd719b2cb-3d3a-4596-a3bc-dad00e67656f',
} as const
/** The name of one of them. */
export type SecureBootVariable = keyof typeof secureBootVariables

/** Non-volatile, with boot service and runtime access, time-based authentication. */
const attributes = 0x01 | 0x02 | 0x04 | 0x20
/** EFI_CERT_TYPE_PKCS7_GUID */
const pkcs7 = '4aafd29d-68df-49ee-8aa9-347d375665a7'
const revision = 0x0200
const certificateType = 0x0ef1 // WIN_CERT_TYPE_EFI_GUID
const timeLength = 16
const certificateHead = 24 // WIN_CERTIFICATE_UEFI_GUID without its data

/** The bytes to sign: name, vendor, attributes, time and contents, without any length. */
export function toBeSigned(variable: SecureBootVariable, at: Date, contents: Uint8Array): Uint8Array {
  const flags = Buffer.alloc(4)
  flags.writeUInt32LE(attributes)
  return Buffer.concat([Buffer.from(variable, 'utf16le'), writeGuid(secureBootVariables[variable]), flags, time(at), contents])
}

/** The variable as passed to the firmware: time, signature (PKCS#7 SignedData, DER), contents. */
export function writeAuthenticatedVariable(at: Date, signedData: Uint8Array, contents: Uint8Array): Uint8Array {
  const head = Buffer.alloc(certificateHead)
  head.writeUInt32LE(certificateHead + signedData.length, 0)
  head.writeUInt16LE(revision, 4)
  head.writeUInt16LE(certificateType, 6)
  head.set(writeGuid(pkcs7), 8)
  return Buffer.concat([time(at), head, signedData, contents])
}

/** EFI_TIME in UTC; fractions of a second and the time zone must be zero. */
function time(at: Date): Buffer {
  const bytes = Buffer.alloc(timeLength)
  bytes.writeUInt16LE(at.getUTCFullYear(), 0)
  bytes.set([at.getUTCMonth() + 1, at.getUTCDate(), at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()], 2)
  return bytes
}
