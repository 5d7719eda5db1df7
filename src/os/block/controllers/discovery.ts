import type { Clock } from '../../../cosi/clock.ts'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Kernel } from '../../kernel.ts'
import { type Content, probeDevice } from '../device.ts'
import { BlockDevice } from '../resources/block-device.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { DiscoveryRefreshRequest, DiscoveryRefreshStatus } from '../resources/discovery-refresh.ts'
import { prettySize } from '../sizes.ts'
import { blockDevices, type SysFiles } from '../sysfs.ts'

/** A device that does not answer for so long is passed over, in milliseconds. */
const patience = 30_000

/** The list of devices is behind the kernel's by so much, in milliseconds. */
const lag = 100

/**
 * A device whose reading fails is read again so often, with so many milliseconds between. One that is not known for the system
 * disk because of a single failed read would make an installed machine wait in maintenance, open to everyone.
 */
const retries = 3
const retryInterval = 500

/** A device that is gone, or a drive without a medium: reading it again changes nothing. */
const absent = ['ENOENT', 'ENXIO', 'ENODEV', 'ENOMEDIUM']

type Device = Resource<SpecOf<typeof BlockDevice>>
type Volume = SpecOf<typeof DiscoveredVolume>

interface Looked {
  /** What was known of the device when it was looked at. */
  as: string
  content?: Content
}

type Opens = Pick<Kernel['block'], 'openDevice'>

/** What is on every disk and partition. A device is read again when it has changed, and all of them when somebody asks. */
export const observeVolumes = ({ block, files }: { block: Opens; files: SysFiles }): Controller => {
  const looked = new Map<string, Looked>()
  let served = -1
  return defineController({
    name: 'block.DiscoveryController',
    inputs: { device: weak(BlockDevice), request: weak(DiscoveryRefreshRequest) },
    outputs: { volume: exclusive(DiscoveredVolume), status: exclusive(DiscoveryRefreshStatus) },
    async reconcile({ device, request, volume, status, log, clock, wakeIn }) {
      const asked = request.get('system')?.spec.request ?? 0
      if (asked !== served) looked.clear()
      const known = device.list()
      const devices = new Map(known.filter(isRead).map((each) => [each.metadata.id, each]))
      for (const id of looked.keys()) if (!devices.has(id)) looked.delete(id)
      await Promise.all(
        [...devices.values()].map(async (each) => {
          const { id } = each.metadata
          const as = knownOf(each, devices)
          if (looked.get(id)?.as !== as) looked.set(id, { as, content: await look(block, each, log, clock) })
        }),
      )
      served = asked
      for (const each of devices.values()) {
        const content = looked.get(each.metadata.id)?.content
        if (content?.size) volume.put(each.metadata.id, describe(each, content, looked.get(each.spec.parent ?? '')?.content))
      }
      // A request is served only when every device that the kernel has was among those looked at: some may have come meanwhile.
      const there = blockDevices(files)
      const whole = known.length === there.size && known.every(({ metadata }) => there.has(metadata.id))
      if (asked > 0 && whole) status.put('system', { request: asked })
      else if (asked > 0) {
        status.keep('system')
        wakeIn(lag)
      }
    },
  })
}

/** All that is known of a device; of a disk its partitions too, since a table that was changed is not always told of. */
function knownOf({ metadata: { id }, spec }: Device, devices: ReadonlyMap<string, Device>): string {
  const parts = [...devices.values()].filter((each) => each.spec.parent === id).map((each) => each.metadata.id)
  return JSON.stringify([spec, parts.sort()])
}

/** Memory and floppy drives hold nothing that lasts, and reading a drive without a disk takes long. */
const isRead = ({ metadata: { id } }: Device): boolean => !/^(z?ram|fd)\d/.test(id)

async function look(block: Opens, { metadata: { id } }: Device, log: Logger, clock: Clock): Promise<Content | undefined> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  late.catch(() => {}) // nobody may be waiting for it between two reads
  const timer = setTimeout(() => reject(new SilentDevice(`"${id}" did not answer`)), patience)
  try {
    for (let left = retries; ; left--)
      try {
        return await Promise.race([probeDevice(block, devicePath(id), late), late])
      } catch (error) {
        if (left === 0 || error instanceof SilentDevice || failedWith(error, ...absent)) throw error
        log.debug('device could not be read, will be retried', { device: id, error })
        await clock.sleep(retryInterval)
      }
  } catch (error) {
    log.debug('device could not be looked at', { device: id, error })
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** A device that gave no answer in time. */
class SilentDevice extends Error {}

/** A slash in a device's name is an exclamation mark in sysfs. */
const devicePath = (id: string): string => `/dev/${id.replaceAll('!', '/')}`

function describe({ metadata: { id }, spec }: Device, { size, sectorSize, found }: Content, disk: Content | undefined): Volume {
  const entry = disk?.found?.table?.partitions.find(({ index }) => index === spec.partitionNumber)
  return {
    dev_path: devicePath(id),
    type: spec.type,
    device_path: spec.devicePath,
    ...(spec.parent && { parent: spec.parent, parent_dev_path: devicePath(spec.parent) }),
    offset: 0,
    size,
    pretty_size: prettySize(size),
    sector_size: sectorSize,
    name: found?.name ?? '',
    ...(found?.uuid && { uuid: found.uuid }),
    ...(found?.label && { label: found.label }),
    ...(found?.blockSize && { block_size: found.blockSize }),
    ...(found?.filesystemBlockSize && { filesystem_block_size: found.filesystemBlockSize }),
    ...(found?.size && { probed_size: found.size }),
    ...(spec.partitionNumber !== undefined && { partition_index: spec.partitionNumber }),
    ...(entry && {
      offset: entry.first * (disk?.sectorSize ?? 512),
      partition_uuid: entry.guid,
      partition_type: entry.type,
      partition_label: entry.name,
    }),
  }
}
