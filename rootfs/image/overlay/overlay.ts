/** Boards that need more than UEFI: what their own firmware starts lies on the EFI system partition, beside the boot loader. */
import { readFileSync, statSync } from 'node:fs'
import { codeOf } from '../../../src/wire/errno.ts'
import { UsageError } from '../../build/failure.ts'
import type { Target } from '../../build/target.ts'
import { artifactsOf } from './artifacts.ts'
import { rpiGeneric, rpiOptions } from './rpi-generic.ts'

/** Values of options by their names. */
export type BoardOptions = Readonly<Record<string, string>>

/** What a disk for a board has more of. */
export interface Board {
  readonly kernelArguments: readonly string[]
  /** Contents by their paths on the EFI system partition. */
  readonly files: ReadonlyMap<string, Buffer>
}

/** The overlay that was requested. */
export interface OverlayRequest {
  readonly name: string
  readonly image: string
  readonly options: BoardOptions
}

/** Overlays that are known here, with the names of their options. */
const known = { rpi_generic: { place: rpiGeneric, options: rpiOptions } } as const

const optionLimit = 64 << 10

/** The request of the flags; undefined without an overlay. Throws UsageError. */
export function overlayRequest(
  name: string | undefined,
  image: string | undefined,
  given: readonly string[],
  target: Target,
): OverlayRequest | undefined {
  if (name === undefined) {
    if (image !== undefined || given.length > 0) throw new UsageError('--overlay-image and --overlay-option need --overlay-name')
    return undefined
  }
  if (!Object.hasOwn(known, name))
    throw new UsageError(
      `--overlay-name "${name}": must be ${Object.keys(known).join(', ')}: the installers of overlays are foreign programs and are not run`,
    )
  if (image === undefined) throw new UsageError('--overlay-name needs --overlay-image, which has the firmware of the board')
  if (target.arch !== 'arm64') throw new UsageError(`--overlay-name ${name}: its boards have arm64: add --arch arm64`)
  return { name, image, options: Object.fromEntries(given.map((each) => optionOf(name as keyof typeof known, each))) }
}

function optionOf(name: keyof typeof known, given: string): [string, string] {
  const names: readonly string[] = known[name].options
  const [, key = '', value = ''] = /^([A-Za-z]+)=(.*)$/s.exec(given) ?? []
  if (!names.includes(key))
    throw new UsageError(
      `--overlay-option "${given.slice(0, 60)}": must be ${names.map((each) => `${each}=TEXT or ${each}=@FILE`).join(', ')}`,
    )
  return [key, value.startsWith('@') ? contentOf(value.slice(1)) : value]
}

function contentOf(path: string): string {
  try {
    if (statSync(path).size <= optionLimit) return readFileSync(path, 'utf8')
  } catch (error) {
    throw new UsageError(`--overlay-option: read "${path}": ${codeOf(error)}`)
  }
  throw new UsageError(`--overlay-option: "${path}" has more than ${optionLimit >> 10} KiB`)
}

/** Folders of the partition that hold what a machine starts and is upgraded by. */
const ours: readonly string[] = ['efi', 'loader', 'ichor']

/** Gets what a board needs. Throws UsageError. */
export async function boardOf({ name, image, options }: OverlayRequest, { arch }: Target): Promise<Board> {
  const board = known[name as keyof typeof known].place(image, await artifactsOf(image, arch), options)
  for (const path of board.files.keys()) {
    // What every FAT file system takes.
    if (!/^[\w.+-]+(\/[\w.+-]+)*$/.test(path)) throw new UsageError(`overlay "${image}": "${path}" is no name for a FAT file system`)
    if (ours.includes(path.split('/')[0]?.toLowerCase() ?? ''))
      throw new UsageError(`overlay "${image}": "${path}" lies where the system keeps its own boot files`)
  }
  return board
}
