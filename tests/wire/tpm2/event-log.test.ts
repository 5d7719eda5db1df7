import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { devicePathText } from '../../../src/wire/efi/device-path.ts'
import { mostLogBytes } from '../../../src/wire/tpm2/buffer.ts'
import type { BankHash } from '../../../src/wire/tpm2/constants.ts'
import { type MeasuredEvent, parseEventLog, replay } from '../../../src/wire/tpm2/event-log.ts'
import { eventDescriber } from '../../../src/wire/tpm2/event-text.ts'
import { eventTypeName, eventTypes } from '../../../src/wire/tpm2/event-types.ts'

/** The log of an emulated machine: OVMF, a systemd stub and the kernel; tests/vm/tpm/measured.story.ts makes such logs. */
const log = new Uint8Array(readFileSync(join(import.meta.dir, 'event-log.bin')))
const events = parseEventLog(log)
const commandLine = 'console=ttyS0 panic=-1'

/** What Debian's tpm2_eventlog computes from the same file. */
const judged: Readonly<Partial<Record<BankHash, readonly (readonly [number, string])[]>>> = {
  sha1: [
    [0, 'c4dc3c30e309dff6c1846552bd93bfb2c4136c1a'],
    [1, '4d773d0743a1481917e74809fce9b1a1d9a5550f'],
    [2, 'b2a83b0ebf2f8374299a5b2bdfc31ea955ad7236'],
    [3, 'b2a83b0ebf2f8374299a5b2bdfc31ea955ad7236'],
    [4, '78d200ea2facbb4f8d473781e14f09e076d320e3'],
    [5, 'd16d7e629fd8d08ca256f9ad3a3a1587c9e6cc1b'],
    [6, 'b2a83b0ebf2f8374299a5b2bdfc31ea955ad7236'],
    [7, '518bd167271fbb64589c61e43d8c0165861431d8'],
    [9, 'c8b33619d04ca06bff3e833ca13bc2f3d88be0a8'],
    [11, '9884a06a3024c333d37f95fb2c96175b4c76acf8'],
  ],
  sha256: [
    [0, 'f2a5d8a70c8cdb53328de8aec2e78787b60c7b06e5ba5fc70e78d92fe970307e'],
    [1, '413082c2c056a31204b67ca4c92fff3f0501062ca9fb659196bd133c1200ebd2'],
    [2, '3d458cfe55cc03ea1f443f1562beec8df51c75e14a9fcf9a7234a13f198e7969'],
    [3, '3d458cfe55cc03ea1f443f1562beec8df51c75e14a9fcf9a7234a13f198e7969'],
    [4, 'b5344711f6832ffa048fd9c6d7f584a5dd4cb8e058277894463e58ca6021c8b8'],
    [5, 'a5ceb755d043f32431d63e39f5161464620a3437280494b5850dc1b47cc074e0'],
    [6, '3d458cfe55cc03ea1f443f1562beec8df51c75e14a9fcf9a7234a13f198e7969'],
    [7, '65caf8dd1e0ea7a6347b635d2b379c93b9a1351edc2afc3ecda700e534eb3068'],
    [9, 'afdca2549f4500c7b08e0689c5ecb1317fc9a91a50fb1984da50a774115c1287'],
    [11, 'd0ec0aaae3a4f1a7fd10a9027c48b2420a70c1c3efcd7dd0ecbff0109ecd49ec'],
  ],
}

describe('a log of a real start', () => {
  test('gives the values that tpm2_eventlog computes', () => {
    expect(events).toHaveLength(37)
    for (const [bank, values] of Object.entries(judged)) {
      const replayed = [...replay(events, bank as BankHash)].sort(([a], [b]) => a - b)
      expect(replayed.map(([pcr, value]) => [pcr, Buffer.from(value).toString('hex')])).toEqual(values.map((pair) => [...pair]))
    }
  })

  test('is described line by line', () => {
    const describeEvent = eventDescriber(commandLine)
    const lines = events.map((event) => {
      const { subject, detail } = describeEvent(event)
      return `${event.pcr} ${eventTypeName(event.type)} ${subject}${detail && ` = ${detail}`}`
    })
    for (const line of [
      '0 EV_EFI_PLATFORM_FIRMWARE_BLOB firmware at 0x820000 = 917504 bytes',
      '7 EV_EFI_VARIABLE_DRIVER_CONFIG variable SecureBoot = 00',
      '7 EV_EFI_VARIABLE_DRIVER_CONFIG variable dbx = empty',
      '1 EV_EFI_VARIABLE_BOOT variable BootOrder = Boot0001 Boot0000 Boot0002',
      '1 EV_EFI_VARIABLE_BOOT variable Boot0001 = "UEFI Non-Block Boot Device" PciRoot(0x0)/Pci(0x3,0x0)',
      '4 EV_EFI_ACTION Calling EFI Application from Boot Option',
      '4 EV_SEPARATOR separator',
      '4 EV_EFI_BOOT_SERVICES_APPLICATION PciRoot(0x0)/Pci(0x3,0x0)/\\EFI\\BOOT\\BOOTX64.EFI = 8343552 bytes',
      '11 EV_IPL name of section .cmdline',
      `11 EV_IPL section .cmdline = ${commandLine}`,
      `9 EV_EVENT_TAG LOADED_IMAGE::LoadOptions = ${commandLine}`,
      '9 EV_EVENT_TAG Linux initrd',
      '5 EV_EFI_ACTION Exit Boot Services Returned with Success',
    ])
      expect(lines).toContain(line)
    const without = events.map((event) => eventDescriber('another')(event).detail)
    expect(without).not.toContain(commandLine)
  })
})

describe('a log that is damaged', () => {
  test('is refused where it is cut, except between events', () => {
    const whole: number[] = []
    for (let length = 0; length < 1500; length++)
      try {
        parseEventLog(log.subarray(0, length))
        whole.push(length)
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    expect(whole.length).toBeGreaterThan(3)
    expect(whole.length).toBeLessThan(8)
  })

  test('is refused in the format of TPM 1.2, with an unknown PCR, and where it is too long', () => {
    const older = log.slice()
    older[32] = 0
    expect(() => parseEventLog(older)).toThrow('it is not of TPM 2.0')
    const header = 32 + Buffer.from(log).readUInt32LE(28)
    const unknown = log.slice()
    unknown[header] = 24
    expect(() => parseEventLog(unknown)).toThrow('there is no PCR 24')
    expect(() => parseEventLog(new Uint8Array(mostLogBytes + 1))).toThrow('it is too long')
  })
})

const event = (type: number, data: Uint8Array, pcr = 0): MeasuredEvent => ({
  pcr,
  type,
  digests: new Map([['sha256', new Uint8Array(32)]]),
  data,
})

test('PCR 0 begins with the locality from which the TPM was started', () => {
  const started = event(eventTypes.EV_NO_ACTION, Buffer.from('StartupLocality\0\x03'))
  expect(Buffer.from(replay([started], 'sha256').get(0) ?? []).toString('hex')).toBe(`${'00'.repeat(31)}03`)
  expect(replay([started, event(eventTypes.EV_SEPARATOR, new Uint8Array(4))], 'sha256').get(0)).not.toEqual(
    replay([event(eventTypes.EV_SEPARATOR, new Uint8Array(4))], 'sha256').get(0),
  )
})

test('an event whose data has another form keeps its line, and its text is safe for a terminal', () => {
  const describeEvent = eventDescriber()
  expect(describeEvent(event(eventTypes.EV_EFI_VARIABLE_BOOT, new Uint8Array(7)))).toEqual({
    subject: '',
    detail: '7 bytes in another form',
  })
  const name = Buffer.from('a\x1b[31m', 'utf16le')
  const head = Buffer.alloc(32)
  head.writeBigUInt64LE(BigInt(name.length / 2), 16)
  expect(describeEvent(event(eventTypes.EV_EFI_VARIABLE_BOOT, Buffer.concat([head, name]))).subject).toBe(
    'variable a?[31m-00000000-0000-0000-0000-000000000000',
  )
  expect(eventTypeName(0x90000001)).toBe('0x90000001')
})

test('device paths are written node by node; unknown nodes by their numbers', () => {
  const path = (...nodes: number[][]) =>
    devicePathText(
      Buffer.concat(nodes.map(([type = 0, subtype = 0, ...data]) => Buffer.from([type, subtype, data.length + 4, 0, ...data]))),
    )
  expect(path([1, 1, 0, 31], [3, 18, 1, 0, 0, 0, 0, 0], [9, 9, 171], [0x7f, 0xff], [1, 1, 0, 0])).toBe(
    'Pci(0x1F,0x0)/Sata(0x1,0x0,0x0)/Path(9,9,ab)',
  )
  expect(path([1, 1, 0])).toBe('Path(1,1,00)')
  expect(() => devicePathText(Buffer.from([1, 1, 3, 0]))).toThrow(DecodeError)
  expect(() => devicePathText(Buffer.from([1, 1, 9, 0]))).toThrow('a node of 9 bytes')
})
