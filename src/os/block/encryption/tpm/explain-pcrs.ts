/** What explains the values of PCRs: the events of the firmware's log, and the phases that stage 0 and init measured, which are in no log. */
import { createHash } from 'node:crypto'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { type BankHash, bankHashes } from '../../../../wire/tpm2/constants.ts'
import { extended, type MeasuredEvent, replay } from '../../../../wire/tpm2/event-log.ts'
import { eventDescriber, oneLine } from '../../../../wire/tpm2/event-text.ts'
import { eventTypeName, eventTypes } from '../../../../wire/tpm2/event-types.ts'
import type { KernelMeasurement } from '../../../../wire/tpm2/ima-log.ts'
import type { PCRMeasurement } from '../../../hardware/resources/pcr-measurement.ts'
import { imagePcr } from './tpm-window.ts'

type Measurement = SpecOf<typeof PCRMeasurement>
/** By PCR. */
type Events = Map<number, Measurement['events']>

/** What stage 0 measures before init, where the driver of the TPM was there in time. */
const stage0Phases = ['enter-initrd', 'leave-initrd']

/** What is known of a start. */
export interface Start {
  readonly bank: BankHash
  readonly values: ReadonlyMap<number, Uint8Array>
  readonly firmware: readonly MeasuredEvent[]
  /** What the kernel measured afterwards. */
  readonly kernel: readonly KernelMeasurement[]
  /** Words that init measured, in their order. */
  readonly phases: readonly string[]
  readonly commandLine?: string
}

/** The PCRs in use: those with events, or with a value that is not the one of a TPM that was switched on. */
export function explainedPcrs({ bank, values, firmware, kernel, phases, commandLine }: Start): Map<number, Measurement> {
  const events = eventsOf(bank, firmware, commandLine)
  const replayed = replay(firmware, bank)
  const currentOf = (pcr: number) => replayed.get(pcr) ?? new Uint8Array(bankHashes[bank])
  for (const { pcr, template, subject, digest } of kernel) {
    replayed.set(pcr, extended(bank, currentOf(pcr), digest(bank)))
    add(events, pcr, { type: template, digest: hexOf(digest(bank)), subject: oneLine(subject) })
  }
  const start = currentOf(imagePcr)
  const measured = phasesOf(bank, start, values.get(imagePcr), phases)
  if (measured.length > 0) {
    replayed.set(imagePcr, afterPhases(bank, start, measured))
    for (const word of measured) add(events, imagePcr, phaseEvent(bank, word))
  }
  const used = [...values].filter(([pcr, value]) => events.has(pcr) || !isInitial(value))
  return new Map(
    used.map(([pcr, value]) => {
      const expected = replayed.get(pcr)
      const explained = expected ? Buffer.compare(expected, value) === 0 : isInitial(value)
      return [pcr, { bank, value: hexOf(value), explained, events: events.get(pcr) ?? [] }]
    }),
  )
}

/** Events of the firmware that extended the bank, by PCR. */
function eventsOf(bank: BankHash, firmware: readonly MeasuredEvent[], commandLine?: string): Events {
  const describeEvent = eventDescriber(commandLine)
  const events: Events = new Map()
  for (const [at, event] of firmware.entries()) {
    const digest = event.digests.get(bank)
    if (!digest || event.type === eventTypes.EV_NO_ACTION) continue
    const { subject, detail } = describeEvent(event)
    add(events, event.pcr, { index: at + 1, type: eventTypeName(event.type), digest: hexOf(digest), subject, ...(detail && { detail }) })
  }
  return events
}

function add(events: Events, pcr: number, event: Measurement['events'][number]): void {
  const known = events.get(pcr)
  if (known) known.push(event)
  else events.set(pcr, [event])
}

/** Stage 0 does not report whether it measured. A value that only init's words give shows that it did not: the driver came later. */
function phasesOf(bank: BankHash, start: Uint8Array, value: Uint8Array | undefined, own: readonly string[]): readonly string[] {
  const isOwnOnly = value !== undefined && Buffer.compare(afterPhases(bank, start, own), value) === 0
  return isOwnOnly ? own : [...stage0Phases, ...own]
}

const phaseDigest = (bank: BankHash, word: string): Uint8Array => createHash(bank).update(word).digest()

const phaseEvent = (bank: BankHash, word: string) => ({ type: 'phase', digest: hexOf(phaseDigest(bank, word)), subject: word })

const afterPhases = (bank: BankHash, start: Uint8Array, words: readonly string[]): Uint8Array =>
  words.reduce((value, word) => extended(bank, value, phaseDigest(bank, word)), start)

/** PCRs begin with zeros, those for a launch at run time with ones. */
const isInitial = (value: Uint8Array): boolean => value.every((byte) => byte === 0) || value.every((byte) => byte === 0xff)

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
