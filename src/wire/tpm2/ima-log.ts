/** The log of what the kernel itself measures (IMA), in the byte order of the processors that are supported: one entry for each extend of a PCR. */
import { createHash } from 'node:crypto'
import { LogReader, mostLogBytes } from './buffer.ts'
import { type BankHash, bankHashes, pcrCount } from './constants.ts'

const mostEntries = 4096
const mostName = 64

/** One measurement. */
export interface KernelMeasurement {
  readonly pcr: number
  /** The form of its data, like `ima-ng`. */
  readonly template: string
  /** What was measured: `boot_aggregate` is the digest of the PCRs before, all others are files. */
  readonly subject: string
  /** By which a bank was extended. */
  digest(bank: BankHash): Uint8Array
}

/** Decodes a log. Throws DecodeError. */
export function parseImaLog(bytes: Uint8Array): KernelMeasurement[] {
  const reader = new LogReader(bytes, 'IMA log')
  const sized = (most: number) => {
    const length = reader.u32()
    if (length > most) throw reader.failure(`a field of ${length} bytes`)
    return Buffer.from(reader.take(length).buffer)
  }
  const entries: KernelMeasurement[] = []
  while (!reader.ended) {
    if (entries.length === mostEntries) throw reader.failure(`more than ${mostEntries} entries`)
    const pcr = reader.u32()
    if (pcr >= pcrCount) throw reader.failure(`there is no PCR ${pcr}`)
    const isViolation = reader.take(bankHashes.sha1).every((byte) => byte === 0)
    const template = sized(mostName).toString('latin1')
    // The oldest form has no length.
    if (template === 'ima') throw reader.failure('the template "ima" is not supported')
    entries.push(entry(pcr, template, sized(mostLogBytes), isViolation))
  }
  return entries
}

/** A file that was written while it was measured has no digest: the PCR is extended by ones. */
function entry(pcr: number, template: string, data: Buffer, isViolation: boolean): KernelMeasurement {
  return {
    pcr,
    template,
    subject: secondField(data),
    digest: (bank) => (isViolation ? new Uint8Array(bankHashes[bank]).fill(0xff) : createHash(bank).update(data).digest()),
  }
}

/** Templates begin with the digest and the name of what was measured, each with its length. */
function secondField(data: Buffer): string {
  const next = (from: number) => (from + 4 <= data.length ? from + 4 + data.readUInt32LE(from) : data.length)
  const begin = next(0)
  return begin + 4 <= data.length ? data.toString('utf8', begin + 4, Math.min(next(begin), data.length)).replace(/\0+$/, '') : ''
}
