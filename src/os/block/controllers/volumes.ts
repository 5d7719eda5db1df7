/**
 * Volumes come into being step by step: looked for, made where they are missing and may be made, given a file system, ready.
 * Those of an earlier wave are settled before a later one is made, so that the system's own come first.
 */
import { type Controller, defineController, exclusive, strong, weak } from '../../../cosi/controller.ts'
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import type { Machine } from '../../area.ts'
import { DevicesStatus } from '../../runtime/resources/devices-status.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { DiscoveryRefreshRequest } from '../resources/discovery-refresh-request.ts'
import { DiscoveryRefreshStatus } from '../resources/discovery-refresh-status.ts'
import { Disk } from '../resources/disk.ts'
import { VolumeConfig } from '../resources/volume-config.ts'
import { VolumeLifecycle } from '../resources/volume-lifecycle.ts'
import { VolumeStatus } from '../resources/volume-status.ts'
import { prettySize } from '../sizes.ts'
import { prepare, shownName } from '../volumes/prepare.ts'
import { growPartition, mendTable, NoRoom, provision } from '../volumes/provision.ts'
import { type Config, type Found, locate, pickDisks, systemDiskOf } from '../volumes/view.ts'

type Status = SpecOf<typeof VolumeStatus>

/** What failed is tried again after so long, in milliseconds: a disk may come, or be wiped. */
const again = 15_000

const encryptionRefused = 'encryption of volumes is not supported: take the encryption section out of the configuration'

/** Brings volumes into being. */
export const settleVolumes = (parts: Pick<Machine, 'kernel' | 'spawn' | 'log'>): Controller => {
  /** Asks for all devices to be read again whenever something was written to them. */
  let refresh = 1
  /** Devices whose file systems were seen to, with what they were then. */
  const prepared = new Map<string, string>()
  /** Volumes whose partitions were made and not seen yet: the kernel tells of them in its own time. */
  const made = new Set<string>()
  /** Where volumes were found since the start: one whose disk is gone is not made anew on another. */
  const places = new Map<string, string>()
  /** The system disk whose partition table was seen to. */
  let mended: string | undefined
  return defineController({
    name: 'block.VolumeManagerController',
    inputs: {
      config: strong(VolumeConfig),
      volume: weak(DiscoveredVolume),
      disk: weak(Disk),
      devices: weak(DevicesStatus, { id: 'devices' }),
      refreshed: weak(DiscoveryRefreshStatus),
      lifecycle: weak(VolumeLifecycle),
    },
    outputs: { status: exclusive(VolumeStatus), request: exclusive(DiscoveryRefreshRequest) },
    async reconcile({ config, volume, disk, devices, refreshed, lifecycle, status, request, log, wakeIn }) {
      const ready = devices.get('devices')?.spec.ready === true
      const current = () => refreshed.get('system')?.spec.request === refresh
      const inUse = lifecycle.list().length > 0
      const found: Found = { disks: disk.list(), volumes: volume.list(), system: systemDiskOf(volume.list()) }
      const seen = ready && current() && isWhole(found)
      const known = (id: string) => status.get(id)?.spec
      let blockedFrom = Number.POSITIVE_INFINITY
      if (seen && inUse && found.system && mended !== found.system) {
        if (await mendTable(parts, `/dev/${found.system}`)) refresh++
        mended = found.system
      }
      for (const id of places.keys()) if (!config.get(id)) places.delete(id)
      for (const { metadata, spec } of byWave(config.list())) {
        const { id, labels } = metadata
        const wave = spec.provisioning.wave ?? 0
        let next: Status
        try {
          // What was written is seen only when the devices have been read again: until then everything stays as it is.
          next =
            seen && refreshed.get('system')?.spec.request === refresh
              ? await settle(id, spec, wave <= blockedFrom && inUse)
              : (known(id) ?? waiting(spec))
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error)
          const before = known(id)
          if (before?.errorMessage !== message) log.error('volume failed', { volume: id, error: message })
          next = {
            ...waiting(spec),
            phase: 'failed',
            preFailPhase: before?.phase === 'failed' ? before.preFailPhase : (before?.phase ?? 'waiting'),
            errorMessage: message,
          }
          wakeIn(again)
        }
        if (next.phase === 'waiting' || next.phase === 'failed') blockedFrom = Math.min(blockedFrom, wave)
        status.put(id, next, { labels })
      }
      if (ready) request.put('system', { request: refresh })

      async function settle(id: string, spec: Config, mayMake: boolean): Promise<Status> {
        if (spec.type !== 'partition' && spec.type !== 'disk') return { ...waiting(spec), phase: 'ready' }
        if (spec.encryption) throw new Error(encryptionRefused)
        // Until the system is on its disk any disk may be the one it is to be put on.
        if (spec.type === 'disk' && !found.system) return waiting(spec)
        const located = locate(spec, found)
        if (!located) return missing(id, spec, mayMake)
        made.delete(id)
        places.set(id, located.spec.dev_path)
        const { dev_path: path, parent_dev_path: parent, partition_index: index } = located.spec
        const { partitionSpec } = spec.provisioning
        if (inUse && partitionSpec?.grow && parent && index && (await growPartition(parts, id, partitionSpec, parent, index))) refresh++
        const key = `${path} ${located.spec.uuid ?? ''} ${located.spec.partition_uuid ?? ''}`
        if (inUse && prepared.get(id) !== key) {
          const name = await prepare(parts, id, spec, path)
          prepared.set(id, key)
          // What was just made is to be seen by everybody before it is used.
          if (name !== located.spec.name) {
            refresh++
            return locatedStatus(spec, located, 'prepared')
          }
        }
        return locatedStatus(spec, located, inUse ? 'ready' : 'located')
      }

      /** Not there: made where that is allowed, told where not. */
      async function missing(id: string, spec: Config, mayMake: boolean): Promise<Status> {
        const { partitionSpec, diskSelector } = spec.provisioning
        const place = places.get(id)
        if (place) throw new Error(`volume "${id}" was on ${place}, which is not there any more`)
        if (spec.type === 'disk') throw new NoRoom(`no disk for volume "${id}": its disk selector fits none`)
        if (!partitionSpec) return { ...waiting(spec), phase: 'missing' }
        // The system's own volumes are made only where the system is.
        if (diskSelector?.match === 'system_disk' && !found.system) return { ...waiting(spec), phase: 'missing' }
        if (!mayMake || !found.system) return waiting(spec)
        if (made.has(id)) return { ...waiting(spec), phase: 'provisioned' }
        await provision(parts, id, partitionSpec, pickDisks(found, diskSelector?.match))
        refresh++
        made.add(id)
        return { ...waiting(spec), phase: 'provisioned' }
      }
    },
  })
}

/** Whether every disk that something was found on is known as a disk, too. */
const isWhole = ({ disks, volumes }: Found): boolean => {
  const ids = new Set(disks.map(({ metadata }) => metadata.id))
  return volumes.every(({ metadata, spec }) => ids.has(spec.parent ?? metadata.id))
}

/** In the order they are made: waves, and within one those of a known size before those that take what is left. */
function byWave(configs: Resource<Config>[]): Resource<Config>[] {
  const rank = ({ spec: { provisioning } }: Resource<Config>) =>
    [provisioning.wave ?? 0, provisioning.partitionSpec?.maxSize ? 0 : 1] as const
  return configs.sort((a, b) => {
    const [[wave, open], [otherWave, otherOpen]] = [rank(a), rank(b)]
    return wave - otherWave || open - otherOpen || (a.metadata.id < b.metadata.id ? -1 : 1)
  })
}

/** A volume of which nothing is known yet. */
const waiting = ({ type, parentId, mount, symlink }: Config): Status => ({
  phase: 'waiting',
  type,
  ...(parentId && { parentID: parentId }),
  ...(mount && { mountSpec: mount }),
  ...(symlink && { symlink }),
})

function locatedStatus(config: Config, { spec }: Found['volumes'][number], phase: 'located' | 'prepared' | 'ready'): Status {
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
    ...(spec.name && { filesystem: fileSystemOf(spec.name) }),
  }
}

const fileSystems = new Set(['xfs', 'vfat', 'ext4', 'iso9660', 'swapi', 'virtiofs'])

/** Only what has a name in resources. */
function fileSystemOf(probed: string): string {
  const name = shownName(probed)
  return fileSystems.has(name) ? name : 'none'
}
