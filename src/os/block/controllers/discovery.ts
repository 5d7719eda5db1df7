import type { Clock } from '../../../cosi/clock.ts'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Kernel } from '../../kernel.ts'
import { type Content, probeDevice } from '../device.ts'
import { isInternalVolume } from '../groups/hidden.ts'
import { BlockDevice } from '../resources/block-device.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { DiscoveryRefreshRequest, DiscoveryRefreshStatus } from '../resources/discovery-refresh.ts'
import { prettySize } from '../sizes.ts'
import { blockDevices, type SysFiles } from '../sysfs.ts'

/** Timeout for reading a device, in milliseconds. */
const timeout = 30_000

/** Maximum delay of the device list behind the kernel, in milliseconds. */
const lag = 100

/**
 * Number of retries for a device whose reading fails. If a single failed read hid the system disk, an installed machine would
 * enter maintenance mode, open to everyone.
 */
const retries = 3
const retryInterval = 500

/**
 * A device that did not answer is probed again after so many milliseconds, so many times. Until then it counts as what it was: a disk
 * that is busy for a minute does not take the volumes of a running machine away.
 */
const unanswered = { interval: 10_000, most: 6 } as const

/** Errors of a removed device or a drive without a medium: retrying is useless. */
const absent = ['ENOENT', 'ENXIO', 'ENODEV', 'ENOMEDIUM']

type Device = Resource<SpecOf<typeof BlockDevice>>
type Volume = SpecOf<typeof DiscoveredVolume>

interface Looked {
  /** The device's state when it was probed. */
  as: string
  /** What was on it when it last answered. */
  content?: Content | undefined
  /** How often in a row it has not answered, and when it is probed again: milliseconds of the monotonic clock. */
  silent?: { times: number; until: number }
}

type Opens = Pick<Kernel['block'], 'openDevice'>

/** Publishes the content of every disk and partition. A changed device is probed again, and all devices on a refresh request. */
export const observeVolumes = ({ block, files }: { block: Opens; files: SysFiles }): Controller => {
  const looked = new Map<string, Looked>()
  let served = -1
  return defineController({
    name: 'block.DiscoveryController',
    inputs: { device: weak(BlockDevice), request: weak(DiscoveryRefreshRequest) },
    outputs: { volume: exclusive(DiscoveredVolume), status: exclusive(DiscoveryRefreshStatus) },
    async reconcile({ device, request, volume, status, log, clock, wakeIn }) {
      const requested = request.get('system')?.spec.request ?? 0
      if (requested !== served) for (const [id, { content }] of looked) looked.set(id, { as: '', content })
      const known = device.list()
      const read = known.filter((each) => isRead(each) && !isInternalVolume(files, each.metadata.id))
      const devices = new Map(read.map((each) => [each.metadata.id, each]))
      for (const id of looked.keys()) if (!devices.has(id)) looked.delete(id)
      await Promise.all(
        [...devices.values()].map(async (each) => {
          const { id } = each.metadata
          const as = knownOf(each, devices)
          const last = looked.get(id)
          if (last?.as === as && (!last.silent || clock.elapsed() < last.silent.until)) return
          const seen = await look(block, each, log, clock)
          looked.set(id, seen ? { as, ...seen } : withoutAnswer(as, last, clock))
        }),
      )
      if ([...looked.values()].some(({ silent }) => silent)) wakeIn(unanswered.interval)
      served = requested
      for (const each of devices.values()) {
        const content = looked.get(each.metadata.id)?.content
        if (content?.size) volume.put(each.metadata.id, describe(each, content, looked.get(each.spec.parent ?? '')?.content))
      }
      // A request is complete only if every device of the kernel was probed: some may have appeared meanwhile.
      const there = blockDevices(files)
      const whole = known.length === there.size && known.every(({ metadata }) => there.has(metadata.id))
      if (requested > 0 && whole) status.put('system', { request: requested })
      else if (requested > 0) {
        status.keep('system')
        wakeIn(lag)
      }
    },
  })
}

/** A device that has not answered: it keeps what was on it for a while, and then has nothing until it changes. */
function withoutAnswer(as: string, last: Looked | undefined, clock: Clock): Looked {
  const times = (last?.silent?.times ?? 0) + 1
  if (!last?.content || times > unanswered.most) return { as }
  return { as, content: last.content, silent: { times, until: clock.elapsed() + unanswered.interval } }
}

/** Everything that triggers a new probe of a device. For a disk this includes its partitions, since a changed table does not always cause a uevent. */
function knownOf({ metadata: { id }, spec }: Device, devices: ReadonlyMap<string, Device>): string {
  const parts = [...devices.values()].filter((each) => each.spec.parent === id).map((each) => each.metadata.id)
  return JSON.stringify([spec, parts.sort()])
}

/** RAM and floppy drives hold no persistent data, and reading an empty drive takes long. */
const isRead = ({ metadata: { id } }: Device): boolean => !/^(z?ram|fd)\d/.test(id)

/** What is on a device, if anything; undefined where it did not answer. */
async function look(
  block: Opens,
  { metadata: { id } }: Device,
  log: Logger,
  clock: Clock,
): Promise<{ content: Content | undefined } | undefined> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  late.catch(() => {}) // it may reject while nothing awaits it
  const timer = setTimeout(() => reject(new SilentDevice(`"${id}" did not answer`)), timeout)
  try {
    for (let left = retries; ; left--)
      try {
        return { content: await Promise.race([probeDevice(block, devicePath(id), late), late]) }
      } catch (error) {
        if (left === 0 || error instanceof SilentDevice || failedWith(error, ...absent)) throw error
        log.debug('read device failed, will retry', { device: id, error })
        await clock.sleep(retryInterval)
      }
  } catch (error) {
    log.debug('probe device failed', { device: id, error })
    return failedWith(error, ...absent) ? { content: undefined } : undefined
  } finally {
    clearTimeout(timer)
  }
}

/** A device did not answer within the timeout. */
class SilentDevice extends Error {}

/** sysfs writes a slash in a device's name as an exclamation mark. */
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
