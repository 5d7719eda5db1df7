/** Device paths of the firmware as text (UEFI Specification 2.10, sections 10.3 and 10.6), with the nodes that lead to a boot program. */
import { DecodeError } from '../decode-error.ts'
import { readGuid } from '../gpt/guid.ts'
import { utf16Text } from './text.ts'

const mostNodes = 64
const hex = (value: number) => `0x${value.toString(16).toUpperCase()}`

/** How a node is written, by `type/subtype`; undefined where it is too short for its kind. */
const nodes: Readonly<Record<string, { least: number; text: (data: Buffer) => string }>> = {
  '1/1': { least: 2, text: (data) => `Pci(${hex(data.readUInt8(1))},${hex(data.readUInt8(0))})` },
  '2/1': { least: 8, text: (data) => acpi(data.readUInt32LE(0), data.readUInt32LE(4)) },
  '3/2': { least: 4, text: (data) => `Scsi(${hex(data.readUInt16LE(0))},${hex(data.readUInt16LE(2))})` },
  '3/5': { least: 2, text: (data) => `USB(${hex(data.readUInt8(0))},${hex(data.readUInt8(1))})` },
  '3/11': { least: 6, text: (data) => `MAC(${data.toString('hex', 0, 6)})` },
  '3/12': { least: 0, text: () => 'IPv4()' },
  '3/13': { least: 0, text: () => 'IPv6()' },
  '3/18': { least: 6, text: (data) => `Sata(${[0, 2, 4].map((at) => hex(data.readUInt16LE(at))).join(',')})` },
  '3/23': { least: 12, text: (data) => `NVMe(${hex(data.readUInt32LE(0))},${data.toString('hex', 4, 12)})` },
  '3/24': { least: 0, text: (data) => `Uri(${data.toString('latin1')})` },
  '4/1': { least: 38, text: hardDrive },
  '4/2': { least: 4, text: (data) => `CDROM(${hex(data.readUInt32LE(0))})` },
  '4/3': { least: 16, text: (data) => `VenMedia(${readGuid(data)})` },
  '4/4': { least: 0, text: (data) => utf16Text(data) },
  '4/6': { least: 16, text: (data) => `FvFile(${readGuid(data)})` },
  '4/7': { least: 16, text: (data) => `Fv(${readGuid(data)})` },
}

/** PNP0A03 and PNP0A08 (section 10.3.3: a compressed EISA id in the lower half). */
function acpi(id: number, unit: number): string {
  const name = id === 0x0a0341d0 ? 'PciRoot' : id === 0x0a0841d0 ? 'PcieRoot' : undefined
  return name ? `${name}(${hex(unit)})` : `Acpi(${hex(id)},${hex(unit)})`
}

function hardDrive(data: Buffer): string {
  const number = data.readUInt32LE(0)
  if (data.readUInt8(37) !== 2) return `HD(${number},MBR,${hex(data.readUInt32LE(20))})`
  return `HD(${number},GPT,${readGuid(data.subarray(20, 36))})`
}

/** The text of a path up to its end node: `PciRoot(0x0)/Pci(0x3,0x0)/HD(…)/\EFI\BOOT\BOOTX64.EFI`. Throws DecodeError. */
export function devicePathText(bytes: Uint8Array): string {
  const path = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const parts: string[] = []
  for (let at = 0; at < path.length; ) {
    if (path.length - at < 4) throw new DecodeError('device path', at, 'it is too short')
    const [type, subtype, length] = [path.readUInt8(at), path.readUInt8(at + 1), path.readUInt16LE(at + 2)]
    if (type === 0x7f) break
    if (length < 4 || length > path.length - at) throw new DecodeError('device path', at, `a node of ${length} bytes`)
    if (parts.length === mostNodes) throw new DecodeError('device path', at, `more than ${mostNodes} nodes`)
    const node = nodes[`${type}/${subtype}`]
    const data = path.subarray(at + 4, at + length)
    parts.push(node && data.length >= node.least ? node.text(data) : `Path(${type},${subtype},${data.toString('hex', 0, 16)})`)
    at += length
  }
  return parts.join('/')
}
