/** CEL expressions that select disks and volumes: their variables and their evaluation. */
import type * as v from 'valibot'
import type { SpecOf } from '../../../cosi/resource.ts'
import { CelEnvironment, type CelMessage, type CelType } from '../../../document/cel/environment.ts'
import { CelError } from '../../../document/cel/error.ts'
import { matchesStars } from '../../../wire/wildcard.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { Disk } from '../resources/disk.ts'

/** Variables of an expression about a disk. */
export interface DiskSubject {
  disk: SpecOf<typeof Disk>
  systemDisk: boolean
}

/** Variables of an expression about a volume, including the disk it is on. */
export interface VolumeSubject extends DiskSubject {
  volume: SpecOf<typeof DiscoveredVolume>
}

const decimal = { kB: 1, MB: 2, GB: 3, TB: 4, PB: 5, EB: 6 }
const binary = { KiB: 1, MiB: 2, GiB: 3, TiB: 4, PiB: 5, EiB: 6 }
const multiples = (units: Readonly<Record<string, number>>, base: bigint) =>
  Object.entries(units).map(([unit, power]) => [unit, base ** BigInt(power)] as const)
const constants = Object.fromEntries([...multiples(decimal, 1000n), ...multiples(binary, 1024n)])

type SpecSchema = v.ObjectSchema<Readonly<Record<string, v.GenericSchema & { wrapped?: v.GenericSchema }>>, undefined>

/** CEL types by schema type. All numbers of disks and volumes are unsigned. */
const types: Readonly<Record<string, CelType>> = { string: 'string', boolean: 'bool', number: 'uint', array: 'list<string>' }

function messageOf(schema: v.GenericSchema): CelMessage {
  const fields = Object.entries((schema as SpecSchema).entries)
  return Object.fromEntries(fields.map(([name, field]) => [name, types[(field.wrapped ?? field).type] ?? 'dyn']))
}

const disk = messageOf(Disk.schema)
const volume = messageOf(DiscoveredVolume.schema)

const aboutDisks = new CelEnvironment({
  variables: { disk, system_disk: 'bool' },
  constants,
  functions: { 'glob(string, string): bool': matchesStars },
})
const aboutVolumes = new CelEnvironment({ variables: { volume, disk, system_disk: 'bool' }, constants })

/** Compiles an expression that selects disks. Throws CelError, as does the returned function if evaluation fails. */
export function diskCondition(expression: string): (subject: DiskSubject) => boolean {
  const condition = aboutDisks.condition(expression)
  return ({ disk, systemDisk }) => condition({ disk, system_disk: systemDisk })
}

/** Compiles an expression that selects volumes. Throws CelError, as does the returned function if evaluation fails. */
export function volumeCondition(expression: string): (subject: VolumeSubject) => boolean {
  const condition = aboutVolumes.condition(expression)
  return ({ volume, disk, systemDisk }) => condition({ volume, disk, system_disk: systemDisk })
}

/** The error of an expression about disks or volumes; undefined if it is valid. */
export function expressionProblem(expression: string, about: 'disk' | 'volume'): string | undefined {
  try {
    if (about === 'disk') diskCondition(expression)
    else volumeCondition(expression)
    return undefined
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    return error.message
  }
}
