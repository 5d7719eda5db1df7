/** ACPI events of a running machine (drivers/acpi/event.c): buttons, lids, power. */
import { DecodeError } from '../decode-error.ts'
import { readGeneric } from './generic.ts'

/** Names of the family and of its multicast group. */
export const acpiFamily = { name: 'acpi_event', group: 'acpi_mc_group' } as const

const ACPI_GENL_ATTR_EVENT = 1
const classLength = 20
const busLength = 15

/** One event: `button/power` of a device, with numbers that depend on the class. */
export interface AcpiEvent {
  deviceClass: string
  bus: string
  type: number
  data: number
}

/** Decodes an event: struct acpi_genl_event. */
export function readAcpiEvent(body: Uint8Array): AcpiEvent {
  const event = readGeneric(body, 'ACPI event').attributes.bytes(ACPI_GENL_ATTR_EVENT)
  // Two strings of fixed length, then, aligned, two numbers.
  const numbers = (classLength + busLength + 3) & ~3
  if (!event || event.length < numbers + 8) throw new DecodeError('ACPI event', 4, 'too short')
  const bytes = Buffer.from(event.buffer, event.byteOffset, event.length)
  const text = (from: number, length: number) => bytes.toString('latin1', from, from + length).split('\0')[0] ?? ''
  return {
    deviceClass: text(0, classLength),
    bus: text(classLength, busLength),
    type: bytes.readUInt32LE(numbers),
    data: bytes.readUInt32LE(numbers + 4),
  }
}
