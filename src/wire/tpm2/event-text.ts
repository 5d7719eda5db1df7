/** What an event is about, in one line: as far as the log contains it, which for most events is a name beside the digest. */
import { createHash } from 'node:crypto'
import { DecodeError } from '../decode-error.ts'
import { bootOptionName, bootOptionTitle, globalVendor, parseBootOrder } from '../efi/boot-option.ts'
import { devicePathText } from '../efi/device-path.ts'
import { utf16Text } from '../efi/text.ts'
import { readGuid } from '../gpt/guid.ts'
import type { BankHash } from './constants.ts'
import type { MeasuredEvent } from './event-log.ts'
import { eventTypeName } from './event-types.ts'

/** An event in words: what was measured, which stays the same from start to start, and what is known of its content. */
export interface EventText {
  readonly subject: string
  readonly detail: string
}

/** Most characters of each. */
const mostText = 512
const mostPartitions = 128

/** Vendors of variables, besides that of the specification (`globalVendor`). */
const securityVendor = 'd719b2cb-3d3a-4596-a3bc-dad00e67656f'
const tables: Readonly<Record<string, string>> = {
  'eb9d2d31-2d88-11d3-9a16-0090273fc14d': 'SMBIOS',
  'f2fd1544-9794-4a2c-992e-e5bbcf20e394': 'SMBIOS',
  '8868e871-e4f1-11d3-bc22-0080c73c8881': 'ACPI',
  'eb9d2d30-2d88-11d3-9a16-0090273fc14d': 'ACPI',
}

type Describe = (data: Buffer) => EventText

const known: Readonly<Record<string, Describe>> = {
  EV_SEPARATOR: (data) => ({ subject: 'separator', detail: data.every((byte) => byte === 0) ? '' : `error ${hexOf(data)}` }),
  EV_S_CRTM_VERSION: (data) => ({ subject: 'version of the firmware', detail: data.length === 16 ? readGuid(data) : utf16Text(data) }),
  EV_EFI_VARIABLE_DRIVER_CONFIG: variable,
  EV_EFI_VARIABLE_BOOT: variable,
  EV_EFI_VARIABLE_BOOT2: variable,
  EV_EFI_VARIABLE_AUTHORITY: variable,
  EV_EFI_BOOT_SERVICES_APPLICATION: program,
  EV_EFI_BOOT_SERVICES_DRIVER: program,
  EV_EFI_RUNTIME_SERVICES_DRIVER: program,
  EV_EFI_PLATFORM_FIRMWARE_BLOB: blob,
  EV_EFI_PLATFORM_FIRMWARE_BLOB2: namedBlob,
  EV_EFI_HANDOFF_TABLES: (data) => ({ subject: 'tables of the firmware', detail: handoffTables(data) }),
  EV_EFI_HANDOFF_TABLES2: (data) => ({
    subject: `tables of the firmware: ${data.toString('latin1', 1, 1 + data.readUInt8(0))}`,
    detail: handoffTables(data.subarray(1 + data.readUInt8(0))),
  }),
  EV_EFI_GPT_EVENT: partitions,
  EV_EFI_GPT_EVENT2: partitions,
  EV_EVENT_TAG: (data) => ({ subject: textOf(data.subarray(8, 8 + data.readUInt32LE(4))), detail: '' }),
}

/** Describes events. With the kernel's command line also that, where it is what was measured: the log holds its digest only. */
export function eventDescriber(commandLine?: string): (event: MeasuredEvent) => EventText {
  const line = commandLine === undefined ? () => false : digestsOf(...commandLineForms(commandLine))
  const names = new Map<string, (event: MeasuredEvent) => boolean>()
  const isName = (event: MeasuredEvent, section: string) => {
    const known = names.get(section) ?? digestsOf(`${section}\0`)
    names.set(section, known)
    return known(event)
  }
  return (event) => {
    const type = eventTypeName(event.type)
    const data = Buffer.from(event.data.buffer, event.data.byteOffset, event.data.byteLength)
    const { subject, detail } = described(type, data)
    const isSection = type === 'EV_IPL' && sectionName.test(subject)
    return {
      subject: oneLine(isSection ? `${isName(event, subject) ? 'name of ' : ''}section ${subject}` : subject),
      detail: oneLine(commandLine !== undefined && line(event) ? commandLine : detail),
    }
  }
}

/** The stub measures a section of the image twice: its name, then its content. */
const sectionName = /^\.[a-z]{1,8}$/

/** The stub measures its section as it is, the kernel what it was started with: in UTF-16, with its zero. */
function commandLineForms(line: string): (string | Uint8Array)[] {
  const wide = Buffer.from(`${line}\0`, 'utf16le')
  return [line, `${line}\0`, wide, wide.subarray(0, -2)]
}

/** Whether an event is about one of some contents; each is hashed once for a bank. */
function digestsOf(...contents: readonly (string | Uint8Array)[]): (event: MeasuredEvent) => boolean {
  const banks = new Map<BankHash, ReadonlySet<string>>()
  return ({ digests }) => {
    const [first] = digests
    if (!first) return false
    const [bank, digest] = first
    const known = banks.get(bank) ?? new Set(contents.map((content) => createHash(bank).update(content).digest('hex')))
    banks.set(bank, known)
    return known.has(Buffer.from(digest).toString('hex'))
  }
}

function described(type: string, data: Buffer): EventText {
  try {
    return known[type]?.(data) ?? { subject: textOf(data), detail: '' }
  } catch (error) {
    // Firmware writes what it likes: data in another form is no reason to lose the event.
    if (error instanceof DecodeError || error instanceof RangeError) return { subject: '', detail: `${data.length} bytes in another form` }
    throw error
  }
}

/** A variable (UEFI_VARIABLE_DATA): vendor, both lengths, name and value. */
function variable(data: Buffer): EventText {
  const vendor = readGuid(data)
  const [characters, size] = [Number(data.readBigUInt64LE(16)), Number(data.readBigUInt64LE(24))]
  const end = 32 + 2 * characters
  if (end + size > data.length) throw new DecodeError('variable', data.length, 'it is too short')
  const [name, value] = [utf16Text(data.subarray(32, end)), data.subarray(end, end + size)]
  const isUsual = vendor === globalVendor || vendor === securityVendor
  return { subject: `variable ${name}${isUsual ? '' : `-${vendor}`}`, detail: valueText(name, value) }
}

function valueText(name: string, value: Buffer): string {
  if (value.length === 0) return 'empty'
  if (name === 'BootOrder') return parseBootOrder(value).map(bootOptionName).join(' ')
  if (/^Boot[0-9A-F]{4}$/.test(name)) {
    const title = bootOptionTitle(value)
    const path = 6 + 2 * (title.length + 1)
    return `"${title}" ${devicePathText(value.subarray(path, path + value.readUInt16LE(4)))}`
  }
  return value.length <= 8 ? hexOf(value) : `${value.length} bytes`
}

/** A program that the firmware started (UEFI_IMAGE_LOAD_EVENT): its place in memory changes, its path and length do not. */
function program(data: Buffer): EventText {
  const length = Number(data.readBigUInt64LE(24))
  if (32 + length > data.length) throw new DecodeError('program', data.length, 'it is too short')
  return { subject: devicePathText(data.subarray(32, 32 + length)) || 'program', detail: `${data.readBigUInt64LE(8)} bytes` }
}

function blob(data: Buffer): EventText {
  return { subject: `firmware at 0x${data.readBigUInt64LE(0).toString(16)}`, detail: `${data.readBigUInt64LE(8)} bytes` }
}

function namedBlob(data: Buffer): EventText {
  const end = 1 + data.readUInt8(0)
  return { subject: `firmware ${data.toString('latin1', 1, end)}`, detail: `${data.readBigUInt64LE(end + 8)} bytes` }
}

function handoffTables(data: Buffer): string {
  const count = Math.min(Number(data.readBigUInt64LE(0)), Math.floor((data.length - 8) / 24), mostPartitions)
  const ids = Array.from({ length: count }, (_, index) => readGuid(data, 8 + index * 24))
  return ids.map((id) => tables[id] ?? id).join(', ')
}

/** The table of the disk that was started from: its header, the number of entries in use, and these. */
function partitions(data: Buffer): EventText {
  const count = Math.min(Number(data.readBigUInt64LE(92)), Math.floor((data.length - 100) / 128), mostPartitions)
  const names = Array.from({ length: count }, (_, index) => utf16Text(data.subarray(100 + index * 128 + 56, 100 + (index + 1) * 128)))
  return { subject: `partitions of the disk ${readGuid(data, 56)}`, detail: names.join(', ') }
}

/** Text in UTF-16 or in bytes; the number of bytes of what is no text. */
function textOf(data: Buffer): string {
  const isWide = data.length >= 2 && data.length % 2 === 0 && data.every((byte, at) => at % 2 === 0 || byte === 0) && data[0] !== 0
  const text = isWide ? utf16Text(data) : data.toString('latin1').replace(/\0+$/, '')
  return /^[\x20-\x7e\s]+$/.test(text) ? text : `${data.length} bytes`
}

const hexOf = (data: Buffer): string => data.toString('hex', 0, 16)

/** Texts are not this system's: what would confuse a terminal is replaced, and each is cut. */
export function oneLine(text: string): string {
  const line = text.replace(/\p{C}/gu, '?').trim()
  return line.length > mostText ? `${line.slice(0, mostText)}…` : line
}
