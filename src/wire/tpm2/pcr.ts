/** Selections of PCRs and the policies that name them. */
import { joined, type TpmReader, u8, u16, u32 } from './buffer.ts'
import { algorithms, type BankHash, bankHashes, commandCodes, pcrCount } from './constants.ts'
import { sha256 } from './kdf.ts'

/** PCRs of a bank. */
export interface PcrSelection {
  readonly bank: BankHash
  /** Ascending, without duplicates. */
  readonly pcrs: readonly number[]
}

/** The digest of a session at its start. */
export const emptyPolicy: Uint8Array = new Uint8Array(32)

/** Ascending, each once. The TPM hashes values in this order, whatever the order in which they were listed. */
export const sortedPcrs = (pcrs: readonly number[]): number[] => [...new Set(pcrs)].sort((a, b) => a - b)

/** Encodes one selection (TPML_PCR_SELECTION). Throws RangeError for a PCR that no bank has. */
export function writePcrSelection({ bank, pcrs }: PcrSelection): Uint8Array {
  const mask = new Uint8Array(pcrCount / 8)
  for (const pcr of pcrs) {
    const byte = mask[pcr >> 3]
    if (byte === undefined) throw new RangeError(`there is no PCR ${pcr}`)
    mask[pcr >> 3] = byte | (1 << (pcr & 7))
  }
  return joined(u32(1), u16(algorithms[bank]), u8(mask.length), mask)
}

/** Decodes selections; banks of hashes that are not known here are left out. Throws DecodeError. */
export function readPcrSelections(reader: TpmReader): PcrSelection[] {
  const count = reader.u32()
  if (count > 16) throw reader.failure(`${count} selections`)
  const selections: PcrSelection[] = []
  for (let n = 0; n < count; n++) {
    const algorithm = reader.u16()
    const mask = reader.take(reader.u8())
    const bank = (Object.keys(bankHashes) as BankHash[]).find((name) => algorithms[name] === algorithm)
    if (bank)
      selections.push({ bank, pcrs: [...mask].flatMap((byte, at) => bits.filter((bit) => byte & (1 << bit)).map((bit) => at * 8 + bit)) })
  }
  return selections
}

const bits = [0, 1, 2, 3, 4, 5, 6, 7]

/** The digest of a policy after PolicyPCR (part 3, 23.7), from values in the order of the selection. */
export const policyPcrDigest = (before: Uint8Array, selection: PcrSelection, values: readonly Uint8Array[]): Uint8Array =>
  sha256(before, u32(commandCodes.policyPcr), writePcrSelection(selection), sha256(...values))

/** The digest of a policy after PolicyAuthorize (part 3, 23.16) with a key of this name and an empty reference. */
export const policyAuthorizeDigest = (keyName: Uint8Array): Uint8Array =>
  sha256(sha256(emptyPolicy, u32(commandCodes.policyAuthorize), keyName))

/** Decodes the digests of a PCR_Read response (TPML_DIGEST). Throws DecodeError. */
export function readDigests(reader: TpmReader): Uint8Array[] {
  const count = reader.u32()
  if (count > 8) throw reader.failure(`${count} digests`)
  return Array.from({ length: count }, () => reader.sized(64))
}
