/** What expressions that pick disks and volumes may speak of. */
import type { SpecOf } from '../../../cosi/resource.ts'
import { CelError, type CelValue, celHolds, compileCel } from '../../../document/cel.ts'
import type { DiscoveredVolume } from '../resources/discovered-volume.ts'
import type { Disk } from '../resources/disk.ts'

/** Something an expression can be about. */
export interface Subject {
  disk?: SpecOf<typeof Disk>
  volume?: SpecOf<typeof DiscoveredVolume>
  systemDisk: boolean
}

const units: Readonly<Record<string, number>> = Object.fromEntries(
  ['k', 'M', 'G', 'T', 'P', 'E'].flatMap((letter, power) => [
    [`${letter}B`, 1000 ** (power + 1)],
    [`${letter === 'k' ? 'K' : letter}iB`, 1024 ** (power + 1)],
  ]),
)

/** Keys that are not always there, as they are when nothing is known. */
const emptyDisk = {
  model: '',
  serial: '',
  modalias: '',
  wwid: '',
  uuid: '',
  bus_path: '',
  sub_system: '',
  transport: '',
  rotational: false,
  secondary_disks: [],
  symlinks: [],
}
const emptyVolume = {
  parent: '',
  parent_dev_path: '',
  uuid: '',
  label: '',
  sector_size: 0,
  io_size: 0,
  block_size: 0,
  filesystem_block_size: 0,
  probed_size: 0,
  partition_uuid: '',
  partition_type: '',
  partition_label: '',
  partition_index: 0,
}

/** Whether an expression holds for something. Throws CelError for one that cannot be read, or has no answer. */
export function holds(expression: string, { disk, volume, systemDisk }: Subject): boolean {
  const variables: Record<string, CelValue> = {
    ...units,
    system_disk: systemDisk,
    ...(disk && { disk: { ...emptyDisk, ...disk } as unknown as CelValue }),
    ...(volume && { volume: { ...emptyVolume, ...volume } as unknown as CelValue }),
  }
  return celHolds(compileCel(expression), variables)
}

/** What is wrong with an expression about disks, or volumes; undefined when nothing is. */
export function expressionProblem(expression: string, about: 'disk' | 'volume'): string | undefined {
  const disk = { dev_path: '', size: 0, pretty_size: '', io_size: 0, sector_size: 0, readonly: false, cdrom: false }
  const volume = { dev_path: '', type: '', device_path: '', offset: 0, size: 0, pretty_size: '', name: '' }
  try {
    holds(expression, { disk, systemDisk: false, ...(about === 'volume' && { volume }) })
    return undefined
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    // A list of the disk that stands for all others is empty.
    return error.message.startsWith('there is nothing at') ? undefined : error.message
  }
}
