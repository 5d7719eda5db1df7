import { describe, expect, test } from 'bun:test'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { observeMeasurements } from '../../../../src/os/block/controllers/measurements.ts'
import { explainedPcrs } from '../../../../src/os/block/encryption/tpm/explain-pcrs.ts'
import { TpmWindow } from '../../../../src/os/block/encryption/tpm/tpm-window.ts'
import { PCRMeasurement } from '../../../../src/os/hardware/resources/pcr-measurement.ts'
import { extended, parseEventLog, replay } from '../../../../src/wire/tpm2/event-log.ts'
import { parseImaLog } from '../../../../src/wire/tpm2/ima-log.ts'
import { Tpm } from '../../../../src/wire/tpm2/tpm.ts'
import { noSwtpm, startSwtpm } from '../../../support/swtpm.ts'

const log = new Uint8Array(readFileSync(join(import.meta.dir, '../../../wire/tpm2/event-log.bin')))
const firmware = parseEventLog(log)
const words = ['enter-initrd', 'leave-initrd', 'enter-machined']
const zeros = new Uint8Array(32)
const extendedBy = (value: Uint8Array, ...texts: string[]) =>
  texts.reduce((before, text) => extended('sha256', before, hash('sha256', text, 'buffer')), value)

/** What a TPM has after the firmware of the log, with this PCR 11. */
const valuesWith = (image: Uint8Array) => new Map([...replay(firmware, 'sha256'), [8, zeros] as const, [11, image] as const])
const image = replay(firmware, 'sha256').get(11) ?? zeros
const explained = (value: Uint8Array, phases: readonly string[]) =>
  explainedPcrs({ bank: 'sha256', values: valuesWith(value), firmware, kernel: [], phases, commandLine: 'console=ttyS0 panic=-1' })

describe('the PCRs of a start', () => {
  test('are explained by the log of the firmware, and PCR 11 by the phases after it', () => {
    const found = explained(extendedBy(image, ...words), ['enter-machined'])
    expect([...found.keys()].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 9, 11])
    expect([...found.values()].every((each) => each.explained)).toBe(true)
    const events = found.get(11)?.events ?? []
    expect(events.map(({ type }) => type).slice(-4)).toEqual(['EV_IPL', 'phase', 'phase', 'phase'])
    expect(events.slice(-3).map(({ subject }) => subject)).toEqual(words)
    expect(events).toContainEqual(expect.objectContaining({ index: 28, subject: 'section .cmdline', detail: 'console=ttyS0 panic=-1' }))
  })

  test('are explained where the driver came after stage 0', () => {
    const found = explained(extendedBy(image, 'enter-machined'), ['enter-machined'])
    expect([found.get(11)?.explained, found.get(11)?.events.filter(({ type }) => type === 'phase').length]).toEqual([true, 1])
  })

  test('are not explained where something else was measured, each by itself', () => {
    const found = explained(extendedBy(image, 'something', ...words), ['enter-machined'])
    expect([...found].filter(([, each]) => !each.explained).map(([pcr]) => pcr)).toEqual([11])
    const bare = explainedPcrs({ bank: 'sha256', values: valuesWith(image), firmware: [], kernel: [], phases: [] })
    expect([...bare.values()].some((each) => each.explained)).toBe(false)
  })

  test('include what the kernel measured itself', () => {
    const field = (text: string) => Buffer.concat([Buffer.from([text.length, 0, 0, 0]), Buffer.from(text)])
    const data = Buffer.concat([field('sha256:\0digest'), field('boot_aggregate\0')])
    const name = field('ima-ng')
    const entry = (sha1: number) =>
      Buffer.concat([Buffer.from([10, 0, 0, 0]), Buffer.alloc(20, sha1), name, Buffer.from([data.length, 0, 0, 0]), data])
    const value = extended('sha256', extendedBy(zeros, data.toString('latin1')), new Uint8Array(32).fill(255))
    const kernel = parseImaLog(Buffer.concat([entry(1), entry(0)]))
    const found = explainedPcrs({ bank: 'sha256', values: new Map([[10, value]]), firmware: [], kernel, phases: [] })
    expect(found.get(10)).toMatchObject({
      explained: true,
      events: [{ type: 'ima-ng', subject: 'boot_aggregate' }, { digest: 'ff'.repeat(32) }],
    })
    expect(() => parseImaLog(entry(1).subarray(0, 40))).toThrow('it is too short')
  })
})

function observe(window: TpmWindow, bytes: Uint8Array | undefined) {
  const store = new Store()
  const lines: string[] = []
  const write = (message: string) => lines.push(message)
  const logger = { info: write, warn: write, error: write, debug: write, with: () => logger } as never
  const runtime = new Runtime(store, { log: logger })
  const files = {
    exists: (path: string) => path.includes('tpm0') && bytes !== undefined,
    read: () => bytes ?? zeros,
    readTextIfThere: () => 'quiet\n',
  }
  runtime.register(observeMeasurements(window, { files }))
  runtime.start()
  return { store, runtime, lines }
}

test('a machine without a TPM has no PCRs', async () => {
  const { store, runtime } = observe(new TpmWindow({ tpm: { openTpm: async () => undefined } }), log)
  await runtime.settled()
  expect(store.list(PCRMeasurement)).toEqual([])
  runtime.stop()
})

describe.skipIf(noSwtpm !== undefined)(noSwtpm ?? 'a machine with a TPM', () => {
  test('shows its PCRs, again after each phase; a log that cannot be read is logged once', async () => {
    await using swtpm = await startSwtpm()
    const tpm = new Tpm(swtpm.transmit)
    const window = new TpmWindow({ tpm: { openTpm: async () => ({ transmit: swtpm.transmit, close: async () => {} }) } })
    for (const word of ['enter-initrd', 'leave-initrd']) await tpm.measure(11, Buffer.from(word))
    const { store, runtime, lines } = observe(window, log.subarray(0, 100))
    await runtime.settled()
    expect(store.get(PCRMeasurement, '11')?.spec.explained).toBe(true)
    await window.open()
    await runtime.settled()
    await window.close()
    await runtime.settled()
    const spec = store.get(PCRMeasurement, '11')?.spec
    expect(spec).toMatchObject({
      bank: 'sha256',
      explained: true,
      value: Buffer.from(extendedBy(zeros, ...words, 'start-the-world')).toString('hex'),
    })
    expect(spec?.events.map(({ subject }) => subject)).toEqual([...words, 'start-the-world'])
    expect(lines.filter((line) => line.includes('not readable'))).toHaveLength(1)
    runtime.stop()
  })
})
