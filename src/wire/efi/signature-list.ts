/** Signature lists: what the firmware trusts (UEFI 2.10, 32.4.1 EFI_SIGNATURE_LIST). */
import { writeGuid } from '../gpt/guid.ts'

/** EFI_CERT_X509_GUID: the list contains certificates. */
const x509 = 'a5c059a1-94e4-4aa7-87b5-ab155c2bf072'
const headLength = 28
const ownerLength = 16

/** Encodes one list per certificate (DER), as all entries of a list have the same size; `owner` is the GUID of their owner. */
export function writeSignatureLists(certificates: readonly Uint8Array[], owner: string): Uint8Array {
  return Buffer.concat(
    certificates.flatMap((certificate) => {
      const size = ownerLength + certificate.length
      const head = Buffer.alloc(headLength)
      head.set(writeGuid(x509))
      head.writeUInt32LE(headLength + size, 16)
      head.writeUInt32LE(0, 20)
      head.writeUInt32LE(size, 24)
      return [head, writeGuid(owner), certificate]
    }),
  )
}
