/** Converts SMBIOS tables to resource specs by id. */
import type { SpecOf } from '../../cosi/resource.ts'
import { parseSmbios, type SmbiosStructure, smbiosFields } from '../../wire/smbios.ts'
import type { MemoryModule } from './resources/memory-module.ts'
import type { Processor } from './resources/processor.ts'
import type { SystemInformation } from './resources/system-information.ts'

const wakeUpTypes = [
  'Reserved',
  'Other',
  'Unknown',
  'APM Timer',
  'Modem Ring',
  'LAN Remote',
  'Power Switch',
  'PCI PME#',
  'AC Power Restored',
] as const

/** The parsed tables. */
export interface FirmwareTables {
  readonly system?: SpecOf<typeof SystemInformation>
  readonly processors: ReadonlyMap<string, SpecOf<typeof Processor>>
  readonly memory: ReadonlyMap<string, SpecOf<typeof MemoryModule>>
}

/** Parses the tables. Throws DecodeError. */
export function readFirmwareTables(table: Uint8Array): FirmwareTables {
  const structures = parseSmbios(table)
  const of = (type: number) => structures.filter((structure) => structure.type === type)
  const [system] = of(1)
  return {
    ...(system && { system: systemOf(system) }),
    processors: named(of(4).map(processorOf), 'CPU', ({ socket }) => socket),
    memory: named(of(17).flatMap(memoryOf), 'DIMM', ({ deviceLocator }) => deviceLocator),
  }
}

/** Ids from the board's designations; numbers where these are missing or duplicate. */
function named<T>(specs: readonly T[], kind: string, name: (spec: T) => string | undefined): Map<string, T> {
  const found = new Map<string, T>()
  for (const [index, spec] of specs.entries()) {
    const given = name(spec)?.replaceAll(/\s+/g, '-')
    found.set(given && !found.has(given) ? given : `${kind}-${index}`, spec)
  }
  return found
}

/** Type 1 (DSP0134 section 7.2). */
function systemOf(structure: SmbiosStructure): SpecOf<typeof SystemInformation> {
  const { text, byte, uuid } = smbiosFields(structure)
  return {
    manufacturer: text(0x04),
    productName: text(0x05),
    version: text(0x06),
    serialnumber: text(0x07),
    uuid: uuid(0x08),
    wakeUpType: wakeUpTypes[byte(0x18) ?? 2],
    skuNumber: text(0x19),
  }
}

/** Type 4 (section 7.5). Counts above a byte are repeated as words. */
function processorOf(structure: SmbiosStructure): SpecOf<typeof Processor> {
  const { text, byte, word } = smbiosFields(structure)
  const count = (small: number, large: number) => (byte(small) === 0xff ? word(large) : byte(small))
  return {
    socket: text(0x04),
    manufacturer: text(0x07),
    productName: text(0x10),
    maxSpeedMhz: word(0x14),
    bootSpeedMhz: word(0x16),
    status: byte(0x18),
    serialNumber: text(0x20),
    assetTag: text(0x21),
    partNumber: text(0x22),
    coreCount: count(0x23, 0x2a),
    coreEnabled: count(0x24, 0x2c),
    threadCount: count(0x25, 0x2e),
  }
}

/** Type 17 (section 7.18). An empty slot is skipped. */
function memoryOf(structure: SmbiosStructure): SpecOf<typeof MemoryModule>[] {
  const { text, word, double } = smbiosFields(structure)
  const size = word(0x0c) ?? 0
  if (size === 0) return []
  const kibibytes = (size & 0x8000) !== 0 && size !== 0xffff
  const mebibytes = size === 0x7fff ? double(0x1c) : kibibytes ? (size & 0x7fff) >> 10 : size === 0xffff ? undefined : size
  return [
    {
      sizeMiB: mebibytes,
      deviceLocator: text(0x10),
      bankLocator: text(0x11),
      speed: word(0x15),
      manufacturer: text(0x17),
      serialNumber: text(0x18),
      assetTag: text(0x19),
      productName: text(0x1a),
    },
  ]
}
