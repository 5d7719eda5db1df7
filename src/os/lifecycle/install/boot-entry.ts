/** Registers the installed system with the firmware as its first boot option. */
import {
  bootOptionName,
  bootOptionTitle,
  formatBootOption,
  formatBootOrder,
  globalVendor,
  parseBootOrder,
} from '../../../wire/efi/boot-option.ts'
import type { LaidOut } from '../../block/layout.ts'
import type { Kernel } from '../../kernel.ts'

/** The firmware interface used here. */
type Firmware = Pick<Kernel['efi'], 'efiVariables' | 'readEfiVariable' | 'writeEfiVariable'>

const title = 'Ichor'

/** Creates or updates the boot option of the EFI partition and puts it first. Returns its name. */
export function writeFirmwareEntry(firmware: Firmware, { index, uuid, offset, size }: LaidOut, sectorSize: number): string {
  const options = firmware
    .efiVariables(globalVendor)
    .map((name) => /^Boot([0-9A-F]{4})$/.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map((digits) => Number.parseInt(digits, 16))
  const known = options.find((number) => titleOf(firmware, number) === title)
  const number = known ?? firstFree(options)
  const option = formatBootOption({
    title,
    partition: { index, uuid, firstSector: offset / sectorSize, sectors: size / sectorSize },
    file: '\\EFI\\BOOT\\BOOTX64.EFI',
  })
  firmware.writeEfiVariable(bootOptionName(number), globalVendor, option)
  const order = parseBootOrder(firmware.readEfiVariable('BootOrder', globalVendor) ?? new Uint8Array())
  firmware.writeEfiVariable('BootOrder', globalVendor, formatBootOrder([number, ...order.filter((other) => other !== number)]))
  return bootOptionName(number)
}

function titleOf(firmware: Firmware, number: number): string | undefined {
  const bytes = firmware.readEfiVariable(bootOptionName(number), globalVendor)
  try {
    return bytes && bootOptionTitle(bytes)
  } catch {
    return undefined // another system's boot option
  }
}

function firstFree(taken: readonly number[]): number {
  for (let number = 0; ; number++) if (!taken.includes(number)) return number
}
