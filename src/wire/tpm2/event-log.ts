/**
 * The log of what firmware, boot loader and stub measured before the kernel took over (TCG PC Client Platform Firmware Profile, section
 * 10): each event names its PCR, and the digests by which every bank was extended. Replayed it gives the values of the PCRs.
 */
import { createHash } from 'node:crypto'
import { LogReader } from './buffer.ts'
import { algorithms, type BankHash, bankHashes, pcrCount } from './constants.ts'
import { eventTypes } from './event-types.ts'

const mostEvents = 4096
const mostBanks = 16

const signature = 'Spec ID Event03\0'
const locality = 'StartupLocality\0'

/** One event. */
export interface MeasuredEvent {
  readonly pcr: number
  readonly type: number
  /** By bank; those of hashes that are not known here are left out. */
  readonly digests: ReadonlyMap<BankHash, Uint8Array>
  /** What the one who measured wrote beside: a description, or the measured bytes themselves. */
  readonly data: Uint8Array
}

/** Decodes a log. Throws DecodeError, also for a log in the format of TPM 1.2. */
export function parseEventLog(bytes: Uint8Array): MeasuredEvent[] {
  const reader = new LogReader(bytes, 'event log')
  const sizes = digestSizes(reader)
  const events: MeasuredEvent[] = []
  while (!reader.ended) {
    if (events.length === mostEvents) throw reader.failure(`more than ${mostEvents} events`)
    const event = readEvent(reader, sizes)
    // A few firmwares give events that extend nothing an index of their own.
    if (event.pcr >= pcrCount && event.type !== eventTypes.EV_NO_ACTION) throw reader.failure(`there is no PCR ${event.pcr}`)
    events.push(event)
  }
  return events
}

/** Sizes of digests by algorithm, from the event in front. It has the format of TPM 1.2, so that older programs can skip it. */
function digestSizes(reader: LogReader): ReadonlyMap<number, number> {
  reader.u32()
  const type = reader.u32()
  reader.take(bankHashes.sha1)
  const end = reader.u32() + reader.offset
  if (type !== eventTypes.EV_NO_ACTION || !Buffer.from(reader.take(signature.length)).equals(Buffer.from(signature)))
    throw reader.failure('it is not of TPM 2.0')
  reader.take(8) // class of the platform, version of the specification, size of a native integer
  const count = reader.u32()
  if (count > mostBanks) throw reader.failure(`${count} banks`)
  const sizes = new Map<number, number>()
  for (let n = 0; n < count; n++) sizes.set(reader.u16(), reader.u16())
  if (end < reader.offset) throw reader.failure('the first event is too short')
  reader.take(end - reader.offset) // of the vendor
  return sizes
}

function readEvent(reader: LogReader, sizes: ReadonlyMap<number, number>): MeasuredEvent {
  const [pcr, type, count] = [reader.u32(), reader.u32(), reader.u32()]
  if (count > mostBanks) throw reader.failure(`${count} digests`)
  const digests = new Map<BankHash, Uint8Array>()
  for (let n = 0; n < count; n++) {
    const algorithm = reader.u16()
    const size = sizes.get(algorithm)
    if (size === undefined) throw reader.failure(`a digest of algorithm ${algorithm}, which the first event does not list`)
    const digest = reader.take(size)
    const bank = bankOf(algorithm)
    if (!bank) continue
    if (size !== bankHashes[bank]) throw reader.failure(`digests of ${bank} with ${size} bytes`)
    digests.set(bank, digest)
  }
  return { pcr, type, digests, data: reader.take(reader.u32()) }
}

const bankOf = (algorithm: number): BankHash | undefined =>
  (Object.keys(bankHashes) as BankHash[]).find((bank) => algorithms[bank] === algorithm)

/** A PCR value after it is extended by a digest. */
export const extended = (bank: BankHash, value: Uint8Array, digest: Uint8Array): Uint8Array =>
  new Uint8Array(createHash(bank).update(value).update(digest).digest())

/** Values of the PCRs of a bank that the events extend, by number. Events without a digest for the bank extend nothing. */
export function replay(events: readonly MeasuredEvent[], bank: BankHash): Map<number, Uint8Array> {
  const values = new Map<number, Uint8Array>()
  const first = new Uint8Array(bankHashes[bank])
  for (const { pcr, type, digests, data } of events) {
    const digest = digests.get(bank)
    if (type === eventTypes.EV_NO_ACTION) {
      // Where the firmware started the TPM from another locality, PCR 0 begins with its number.
      if (pcr === 0 && startupLocality(data) !== undefined && !values.has(0)) {
        const value = new Uint8Array(first)
        value[value.length - 1] = startupLocality(data) ?? 0
        values.set(0, value)
      }
    } else if (digest) values.set(pcr, extended(bank, values.get(pcr) ?? first, digest))
  }
  return values
}

const startupLocality = (data: Uint8Array): number | undefined =>
  Buffer.from(data.subarray(0, locality.length)).toString('latin1') === locality ? data[locality.length] : undefined
