/** What the firmware does with boot loaders: the option that is first permanently, and one that it takes for a single start. */

import {
  bootOptionName,
  bootOptionTitle,
  formatBootOption,
  formatBootOrder,
  globalVendor,
  parseBootOrder,
} from '../../../wire/efi/boot-option.ts'
import type { LaidOut } from '../../block/public.ts'
import type { Kernel } from '../../kernel.ts'
import type { Firmware } from '../install/layout.ts'

/** Vendor GUID of the variables of the Boot Loader Interface of systemd-boot. */
export const loaderVendor = '4a67b082-0a4c-41cf-b6c7-440b29bb8c4f'

/** The calls of the kernel used here. */
export type FirmwareVariables = Pick<Kernel['efi'], 'efiVariables' | 'readEfiVariable' | 'writeEfiVariable' | 'removeEfiVariable'>

/** The firmware this machine was booted by. */
export function firmwareOf({ kernel: { files } }: { kernel: { files: Pick<Kernel['files'], 'exists'> } }): Firmware {
  return files.exists('/sys/firmware/efi') ? 'uefi' : 'bios'
}

const titles = { usual: 'Ichor', once: 'Ichor (new boot loader)' } as const

/** Creates or updates the option of a boot loader and puts it first. Returns its name. */
export function bootAlways(variables: FirmwareVariables, efi: LaidOut, sectorSize: number, file: string): string {
  const number = writeOption(variables, { title: titles.usual, efi, sectorSize, file })
  const order = parseBootOrder(variables.readEfiVariable('BootOrder', globalVendor) ?? new Uint8Array())
  variables.writeEfiVariable('BootOrder', globalVendor, formatBootOrder([number, ...order.filter((other) => other !== number)]))
  return bootOptionName(number)
}

/** A boot loader that the firmware is to start once (UEFI Specification 2.10, section 3.1.1, BootNext). */
export class SingleStart {
  readonly #variables: FirmwareVariables
  readonly #efi: LaidOut
  readonly #sectorSize: number

  constructor(variables: FirmwareVariables, efi: LaidOut, sectorSize: number) {
    this.#variables = variables
    this.#efi = efi
    this.#sectorSize = sectorSize
  }

  /** Has the next start, and only that one, take this file of the EFI partition, named with backslashes. */
  request(file: string): void {
    const number = writeOption(this.#variables, { title: titles.once, efi: this.#efi, sectorSize: this.#sectorSize, file })
    this.#variables.writeEfiVariable('BootNext', globalVendor, formatBootOrder([number]))
  }

  /** Whether that start is still to come: the firmware removes the request when it follows it. */
  get requested(): boolean {
    const number = this.#option
    const [next] = parseBootOrder(this.#variables.readEfiVariable('BootNext', globalVendor) ?? new Uint8Array())
    return number !== undefined && next === number
  }

  /** Withdraws the request and its option. */
  forget(): void {
    const number = this.#option
    if (number === undefined) return
    if (this.requested) this.#variables.removeEfiVariable('BootNext', globalVendor)
    this.#variables.removeEfiVariable(bootOptionName(number), globalVendor)
  }

  /** The file that started this machine, as systemd-boot reports it, named with backslashes. */
  get startedFrom(): string | undefined {
    const value = this.#variables.readEfiVariable('LoaderImageIdentifier', loaderVendor)
    return value && Buffer.from(value).toString('utf16le').split('\0')[0]
  }

  get #option(): number | undefined {
    return optionWith(this.#variables, titles.once)
  }
}

function writeOption(
  variables: FirmwareVariables,
  { title, efi: { index, uuid, offset, size }, sectorSize, file }: { title: string; efi: LaidOut; sectorSize: number; file: string },
): number {
  const number = optionWith(variables, title) ?? firstFree(optionsOf(variables))
  const partition = { index, uuid, firstSector: offset / sectorSize, sectors: size / sectorSize }
  variables.writeEfiVariable(bootOptionName(number), globalVendor, formatBootOption({ title, partition, file }))
  return number
}

function optionsOf(variables: FirmwareVariables): number[] {
  return variables
    .efiVariables(globalVendor)
    .map((name) => /^Boot([0-9A-F]{4})$/.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map((digits) => Number.parseInt(digits, 16))
}

function optionWith(variables: FirmwareVariables, title: string): number | undefined {
  return optionsOf(variables).find((number) => titleOf(variables, number) === title)
}

function titleOf(variables: FirmwareVariables, number: number): string | undefined {
  const bytes = variables.readEfiVariable(bootOptionName(number), globalVendor)
  try {
    return bytes && bootOptionTitle(bytes)
  } catch {
    return undefined // another system's boot option
  }
}

function firstFree(taken: readonly number[]): number {
  for (let number = 0; ; number++) if (!taken.includes(number)) return number
}
