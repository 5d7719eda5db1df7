/**
 * How one volume comes into being: looked for, made where it is missing and may be made, given a file system, ready. What is
 * remembered here is only what cannot be seen on the disks yet, or no more.
 */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Machine } from '../../area.ts'
import { fileSystemName } from '../resources/file-system.ts'
import type { VolumeStatus } from '../resources/volume-status.ts'
import { prettySize } from '../sizes.ts'
import { prepare, shownName } from './prepare.ts'
import { growPartition, mendTable, NoRoom, provision } from './provision.ts'
import { type Config, type Found, locate, pickDisks } from './view.ts'

type Status = SpecOf<typeof VolumeStatus>
type Located = Found['volumes'][number]

const encryptionRefused = 'encryption of volumes is not supported: take the encryption section out of the configuration'

/** What a volume's turn goes by. */
export interface Turn {
  readonly found: Found
  /** Whether volumes are in use at all; before and after nothing is changed on disks. */
  readonly inUse: boolean
  /** Whether its partition may be made now. */
  readonly mayMake: boolean
}

/** Settles the volumes of a machine, one turn after another. */
export class Settling {
  /** How often something was written that changes what is found: all devices are to be read again then. */
  written = 0
  /** Devices whose file systems were seen to, with what they were then. */
  readonly #prepared = new Map<string, string>()
  /** Volumes whose partitions were made and not seen yet: the kernel tells of them in its own time. */
  readonly #made = new Set<string>()
  /** Where volumes were found since the start: one whose disk is gone is not made anew on another. */
  readonly #places = new Map<string, string>()
  /** The system disk whose partition table was seen to. */
  #mended: string | undefined

  constructor(readonly parts: Pick<Machine, 'kernel' | 'spawn' | 'log'>) {}

  /** Sees that both copies of the system disk's partition table are whole. */
  async mend({ system }: Found): Promise<void> {
    if (!system || this.#mended === system) return
    if (await mendTable(this.parts, `/dev/${system}`)) this.written++
    this.#mended = system
  }

  /** Forgets volumes that are wanted no more. */
  forget(wanted: (id: string) => boolean): void {
    for (const id of this.#places.keys()) if (!wanted(id)) this.#places.delete(id)
  }

  /** How far a volume is after its turn. Throws one line for one that cannot come into being. */
  async settle(id: string, config: Config, turn: Turn): Promise<Status> {
    const { found, inUse } = turn
    if (config.type !== 'partition' && config.type !== 'disk') return { ...waiting(config), phase: 'ready' }
    if (config.encryption) throw new Error(encryptionRefused)
    // Until the system is on its disk any disk may be the one it is to be put on.
    if (config.type === 'disk' && !found.system) return waiting(config)
    const located = locate(config, found, this.#places.get(id))
    if (!located) return this.#missing(id, config, turn)
    this.#made.delete(id)
    this.#places.set(id, located.spec.dev_path)
    if (!inUse) return locatedStatus(config, located, 'located')
    await this.#grow(id, config, located)
    return locatedStatus(config, located, (await this.#prepare(id, config, located)) ? 'ready' : 'prepared')
  }

  async #grow(id: string, { provisioning: { partitionSpec } }: Config, { spec }: Located): Promise<void> {
    const { parent_dev_path: disk, partition_index: index } = spec
    if (partitionSpec?.grow && disk && index && (await growPartition(this.parts, id, partitionSpec, disk, index))) this.written++
  }

  /** Sees to the file system; false when it was only just made, which everybody is to see before it is used. */
  async #prepare(id: string, config: Config, { spec }: Located): Promise<boolean> {
    const as = `${spec.dev_path} ${spec.uuid ?? ''} ${spec.partition_uuid ?? ''}`
    if (this.#prepared.get(id) === as) return true
    const name = await prepare(this.parts, id, config, spec.dev_path)
    this.#prepared.set(id, as)
    if (name === spec.name) return true
    this.written++
    return false
  }

  /** Not there: made where that is allowed, told where not. */
  async #missing(id: string, config: Config, { found, mayMake }: Turn): Promise<Status> {
    const { partitionSpec, diskSelector } = config.provisioning
    const place = this.#places.get(id)
    // What is only looked for and was wiped is missing; what could be made is not made anew elsewhere because its place is another's now.
    const wiped = config.type === 'partition' && !partitionSpec && found.volumes.some(({ spec }) => spec.dev_path === place)
    if (place && !wiped) throw new Error(`volume "${id}" was on ${place}, which is not there any more`)
    if (config.type === 'disk') throw new NoRoom(`no disk for volume "${id}": its disk selector fits none`)
    if (!partitionSpec) return { ...waiting(config), phase: 'missing' }
    // The system's own volumes are made only where the system is.
    if (diskSelector?.match === 'system_disk' && !found.system) return { ...waiting(config), phase: 'missing' }
    if (!mayMake || !found.system) return waiting(config)
    if (!this.#made.has(id)) {
      await provision(this.parts, id, partitionSpec, pickDisks(found, diskSelector?.match))
      this.written++
      this.#made.add(id)
    }
    return { ...waiting(config), phase: 'provisioned' }
  }
}

/** A volume of which nothing is known yet. */
export const waiting = ({ type, parentId, mount, symlink }: Config): Status => ({
  phase: 'waiting',
  type,
  ...(parentId && { parentID: parentId }),
  ...(mount && { mountSpec: mount }),
  ...(symlink && { symlink }),
})

function locatedStatus(config: Config, { spec }: Located, phase: 'located' | 'prepared' | 'ready'): Status {
  return {
    ...waiting(config),
    phase,
    location: spec.dev_path,
    mountLocation: spec.dev_path,
    ...(spec.partition_index && { partitionIndex: spec.partition_index }),
    ...(spec.parent_dev_path && { parentLocation: spec.parent_dev_path }),
    ...(spec.uuid && { uuid: spec.uuid }),
    ...(spec.partition_uuid && { partitionUUID: spec.partition_uuid }),
    size: spec.size,
    prettySize: prettySize(spec.size),
    ...(spec.name && { filesystem: fileSystemName(shownName(spec.name)) }),
  }
}
