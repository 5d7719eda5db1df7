/** The log of what the kernel itself measures (IMA), in the byte order of the processors that are supported: one entry for each extend of a PCR. */
import { createHash } from 'node:crypto'
import { DecodeError } from '../decode-error.ts'
import { type BankHash, bankHashes, pcrCount } from './constants.ts'
import { mostLogBytes } from './event-log.ts'

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
  if (bytes.length > mostLogBytes) throw new DecodeError('IMA log', mostLogBytes, 'it is too long')
  const log = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries: KernelMeasurement[] = []
  let at = 0
  const take = (length: number): Buffer => {
    if (length > log.length - at) throw new DecodeError('IMA log', at, 'it is too short')
    at += length
    return log.subarray(at - length, at)
  }
  const sized = (most: number) => {
    const length = take(4).readUInt32LE()
    if (length > most) throw new DecodeError('IMA log', at, `a field of ${length} bytes`)
    return take(length)
  }
  while (at < log.length) {
    if (entries.length === mostEntries) throw new DecodeError('IMA log', at, `more than ${mostEntries} entries`)
    const pcr = take(4).readUInt32LE()
    if (pcr >= pcrCount) throw new DecodeError('IMA log', at, `there is no PCR ${pcr}`)
    const sha1 = take(bankHashes.sha1)
    const template = sized(mostName).toString('latin1')
    // The oldest form has no length.
    if (template === 'ima') throw new DecodeError('IMA log', at, 'the template "ima" is not supported')
    entries.push(
      entry(
        pcr,
        template,
        sized(mostLogBytes),
        sha1.every((byte) => byte === 0),
      ),
    )
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
