/**
 * Runs one volume through its phases: located, provisioned if missing and allowed, prepared, ready. The state kept here is
 * limited to what the disks do not show yet, or no longer.
 */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Machine } from '../../area.ts'
import type { EncryptedVolumes, Opened } from '../encryption/encrypted-volumes.ts'
import type { Encryption, KeySources } from '../encryption/passphrase.ts'
import { plainState, writeStateRecord } from '../encryption/state-record.ts'
import { metaTags } from '../meta/meta.ts'
import { fileSystemName } from '../resources/file-system.ts'
import type { VolumeStatus } from '../resources/volume-status.ts'
import { prettySize } from '../sizes.ts'
import { prepare, shownName } from './prepare.ts'
import { growPartition, mendTable, NoRoom, provision } from './provision.ts'
import { type Config, type Found, isMedium, locate, pickDisks } from './view.ts'

type Status = SpecOf<typeof VolumeStatus>
type Located = Found['volumes'][number]
type EncryptedConfig = Config & { readonly encryption: Encryption }

/** Inputs of a volume's step. */
export interface Turn {
  readonly found: Found
  /** Whether volumes are in use. Otherwise disks are not changed. */
  readonly inUse: boolean
  /** Whether its partition may be created now. */
  readonly mayMake: boolean
  /** What keys of encrypted volumes are derived from. */
  readonly sources?: KeySources | undefined
  /** Recipients of the recovery key of encrypted volumes, once they are known. */
  readonly recipients?: readonly string[] | undefined
}

type Dependencies = Pick<Machine, 'kernel' | 'spawn' | 'log' | 'clock' | 'meta'>

/** Runs the volumes of a machine through their phases. */
export class Settling {
  /** Number of writes that change the discovered volumes; each requires all devices to be probed again. */
  written = 0
  /** Devices with prepared file systems, with their identity at that time. */
  readonly #prepared = new Map<string, { as: string; name: string }>()
  /** Volumes with a created partition that discovery has not reported yet. */
  readonly #made = new Set<string>()
  /** Where volumes were located since boot: a volume whose disk was removed is not created again on another. */
  readonly #places = new Map<string, string>()
  /** The system disk whose partition table was checked. */
  #mended: string | undefined

  constructor(
    readonly machine: Dependencies,
    readonly encrypted: EncryptedVolumes,
  ) {}

  /** Ensures that both copies of the system disk's partition table are valid. */
  async mend({ system }: Found): Promise<void> {
    if (!system || this.#mended === system) return
    if (await mendTable(this.machine, `/dev/${system}`)) this.written++
    this.#mended = system
  }

  /** Forgets volumes that are no longer configured. */
  forget(wanted: (id: string) => boolean): void {
    for (const id of this.#places.keys()) if (!wanted(id)) this.#places.delete(id)
  }

  /** Closes the encrypted volumes that are no longer needed. Returns those that were closed, and those still in use. */
  close(needed: (id: string) => boolean): { closed: ReadonlySet<string>; busy: ReadonlySet<string> } {
    const going = this.encrypted.open.filter((id) => !needed(id))
    const closed = new Set(going.filter((id) => this.encrypted.close(id)))
    for (const id of closed) this.#prepared.delete(id)
    return { closed, busy: new Set(going.filter((id) => !closed.has(id))) }
  }

  /** Advances a volume and returns its status. Throws a one-line error if the volume cannot be provided. */
  async settle(id: string, config: Config, turn: Turn): Promise<Status> {
    const { found, inUse } = turn
    if (config.type !== 'partition' && config.type !== 'disk') return { ...waiting(config), phase: 'ready' }
    // Before installation, any disk may become the system disk.
    if (config.type === 'disk' && !isMedium(config) && !found.system) return waiting(config)
    const located = locate(config, found, this.#places.get(id))
    if (!located) return this.#missing(id, config, turn)
    this.#made.delete(id)
    this.#places.set(id, located.spec.dev_path)
    if (!inUse) return locatedStatus(config, located, 'located')
    await this.#grow(id, config, located)
    if (id === 'STATE') await this.#recordState(config)
    if (isEncrypted(config)) return this.#settleEncrypted(id, config, located, turn)
    const { dev_path: path, uuid = '', partition_uuid: partition = '', name } = located.spec
    const made = await this.#prepare(id, config, path, `${path} ${uuid} ${partition}`)
    if (made === name) return locatedStatus(config, located, 'ready')
    // The new file system must be probed before it is used.
    this.written++
    return locatedStatus(config, located, 'prepared')
  }

  /** Opens an encrypted volume and prepares the file system in it. A new header must be probed before it is used. */
  async #settleEncrypted(id: string, config: EncryptedConfig, located: Located, turn: Turn): Promise<Status> {
    const { encryption } = config
    const { sources = {}, recipients } = turn
    const { dev_path: path, name } = located.spec
    const opened = await this.encrypted.provide(id, path, { encryption, sources, sync: isDeclared(id, config), recipients })
    const inside = await this.#prepare(id, config, opened.device, `${opened.device} ${opened.uuid}`)
    if (name !== 'luks') this.written++
    return encryptedStatus(config, located, name === 'luks' ? 'ready' : 'prepared', { ...opened, inside })
  }

  /** Keeps in META how STATE is encrypted, before its keys change: at the next start it is the only source. */
  async #recordState(config: Config): Promise<void> {
    if (!isDeclared('STATE', config)) return
    const { meta } = this.machine
    const before = meta.get(metaTags.stateEncryption)
    const next = config.encryption ? writeStateRecord(config.encryption) : plainState
    if (before === next || (before === undefined && next === plainState)) return
    meta.set(metaTags.stateEncryption, next)
    await meta.flush()
  }

  async #grow(id: string, { provisioning: { partitionSpec } }: Config, { spec }: Located): Promise<void> {
    const { parent_dev_path: disk, partition_index: index } = spec
    if (partitionSpec?.grow && disk && index && (await growPartition(this.machine, id, partitionSpec, disk, index))) this.written++
  }

  /** Prepares the file system on a device, once for each identity of it, and returns its probed name. */
  async #prepare(id: string, config: Config, path: string, as: string): Promise<string> {
    const before = this.#prepared.get(id)
    if (before?.as === as) return before.name
    const name = await prepare(this.machine, id, config, path)
    this.#prepared.set(id, { as, name })
    return name
  }

  /** Handles a missing volume: provisions it if allowed, otherwise reports its absence. */
  async #missing(id: string, config: Config, { found, mayMake }: Turn): Promise<Status> {
    const { partitionSpec, diskSelector } = config.provisioning
    if (isMedium(config)) return { ...waiting(config), phase: 'missing' }
    const place = this.#places.get(id)
    // A volume that is only located, not provisioned, is missing once wiped. A provisioned one is not created elsewhere while another volume is in its place.
    const wiped = config.type === 'partition' && !partitionSpec && found.volumes.some(({ spec }) => spec.dev_path === place)
    if (place && !wiped) throw new Error(`volume "${id}" was on ${place}, which no longer exists`)
    if (config.type === 'disk') throw new NoRoom(`no disk for volume "${id}": its disk selector matches none`)
    if (!partitionSpec) return { ...waiting(config), phase: 'missing' }
    // System volumes are provisioned only on the system disk.
    if (diskSelector?.match === 'system_disk' && !found.system) return { ...waiting(config), phase: 'missing' }
    if (!mayMake || !found.system) return waiting(config)
    if (!this.#made.has(id)) {
      await provision(this.machine, id, partitionSpec, pickDisks(found, diskSelector?.match))
      this.written++
      this.#made.add(id)
    }
    return { ...waiting(config), phase: 'provisioned' }
  }
}

/** Whether the configuration describes a volume. STATE is opened from META before there is one. */
const isDeclared = (id: string, { provisioning }: Config): boolean => id !== 'STATE' || provisioning.partitionSpec !== undefined

const isEncrypted = (config: Config): config is EncryptedConfig => config.encryption !== undefined

/** The status of a volume before it is located. */
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

function encryptedStatus(
  config: EncryptedConfig,
  located: Located,
  phase: 'prepared' | 'ready',
  opened: Opened & { inside: string },
): Status {
  const { encryption } = config
  const { filesystem: _, ...status } = locatedStatus(config, located, phase)
  const used = encryption.keys.find(({ slot }) => slot === opened.slot)
  return {
    ...status,
    mountLocation: opened.device,
    uuid: opened.uuid,
    ...(opened.inside && { filesystem: fileSystemName(shownName(opened.inside)) }),
    encryptionProvider: encryption.provider,
    encryptionSlot: opened.slot,
    configuredEncryptionKeys: [...new Set(encryption.keys.map(({ type }) => type))].sort(),
    ...(used?.lockToState && { encryptionLockedToState: true }),
    ...(used?.type === 'tpm' && { tpmEncryptionOptions: { pcrs: used.pcrs, pubKeyPcrs: used.pubKeyPcrs } }),
    ...(opened.failedSyncs.length > 0 && { encryptionFailedSyncs: [...opened.failedSyncs] }),
  }
}
