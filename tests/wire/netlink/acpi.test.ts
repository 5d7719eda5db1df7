import { expect, test } from 'bun:test'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { readAcpiEvent } from '../../../src/wire/netlink/acpi.ts'
import { attribute, nested, text, u32 } from '../../../src/wire/netlink/attributes.ts'
import { readFamilyGroups, writeGeneric } from '../../../src/wire/netlink/generic.ts'

/** struct acpi_genl_event, as the kernel lays it out. */
function event(deviceClass: string, bus: string, type: number, data: number): Uint8Array {
  const bytes = Buffer.alloc(44)
  bytes.write(deviceClass, 0)
  bytes.write(bus, 20)
  bytes.writeUInt32LE(type, 36)
  bytes.writeUInt32LE(data, 40)
  return bytes
}

test('a press of the power button is decoded', () => {
  const body = writeGeneric(1, 1, [attribute(1, event('button/power', 'PWRF', 0x80, 1))])
  expect(readAcpiEvent(body)).toEqual({ deviceClass: 'button/power', bus: 'PWRF', type: 0x80, data: 1 })
})

test('a truncated or malformed event is refused', () => {
  expect(() => readAcpiEvent(writeGeneric(1, 1, [attribute(1, new Uint8Array(40))]))).toThrow(DecodeError)
  expect(() => readAcpiEvent(writeGeneric(1, 1, []))).toThrow(DecodeError)
})

test('the groups of a family are read by name', () => {
  const group = (index: number, name: string, id: number) => nested(index, [u32(2, id), text(1, name)])
  const body = writeGeneric(1, 2, [text(2, 'acpi_event'), nested(7, [group(1, 'acpi_mc_group', 5), group(2, 'other', 9)])])
  expect([...readFamilyGroups(body)]).toEqual([
    ['acpi_mc_group', 5],
    ['other', 9],
  ])
  expect(readFamilyGroups(writeGeneric(1, 2, [])).size).toBe(0)
})
