/** Access to platform metadata: bounded HTTP requests, and disks by label. */

import type { Store } from '../../../cosi/store.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { boundedBody } from '../../../wire/http/bounded-body.ts'
import { DiscoveredVolume } from '../../block/resources/discovered-volume.ts'
import { SystemInformation } from '../../hardware/resources/system-information.ts'
import type { Kernel } from '../../kernel.ts'
import { LinkStatus } from '../resources/link.ts'
import type { KnownLink } from './declare.ts'
import type { PlatformTransport } from './platform.ts'
import { fetchFromPort, privilegedPorts } from './privileged-port.ts'

const longest = 4 << 20
const timeout = 10_000
const place = '/run/platform-disk'
/** Optical drives that are looked at. */
const opticalDrives = 10
const fileSystems = ['iso9660', 'vfat', 'ext4']

interface Dependencies {
  /** Reads a value of the hypervisor VMware; empty where there is none. */
  readonly guestinfo: (key: string, signal: AbortSignal) => Promise<string>
  readonly files: Pick<Kernel['files'], 'exists' | 'readTextIfThere' | 'mkdirAll'>
  readonly mount: Pick<Kernel['mount'], 'mount' | 'umount'>
  readonly store: Pick<Store, 'list'>
  readonly commandLine: string
}

/** Opens the transports for one read. */
export function openPlatform({ guestinfo, files, mount, store, commandLine }: Dependencies, signal: AbortSignal): PlatformTransport {
  return {
    fetch: (url, options) => fetchText(url, { ...options, signal }),
    disk: async (labels, names) => readDisk({ files, mount, store }, labels, names),
    optical: async (type, names) => readOptical({ files, mount }, type, names),
    guestinfo: (key) => guestinfo(key, signal),
    links: knownLinks(store),
    serial: store.list(SystemInformation)[0]?.spec.serialnumber ?? '',
    commandLine,
  }
}

/** The machine's Ethernet links, by which platforms identify interfaces. */
export const knownLinks = (store: Pick<Store, 'list'>): KnownLink[] =>
  store
    .list(LinkStatus)
    .filter(({ spec }) => spec.type === 'ether' && spec.kind === '')
    .map(({ metadata, spec }) => ({
      name: metadata.id,
      hardwareAddress: spec.permanentAddr || spec.hardwareAddr,
      index: spec.index,
      ...(spec.driver && { driver: spec.driver }),
    }))

/** Fetches text. Returns undefined on 404. Throws a one-line error otherwise. */
export async function fetchText(
  url: string,
  {
    method = 'GET',
    headers = {},
    body,
    privileged = false,
    signal,
  }: { method?: string; headers?: Readonly<Record<string, string>>; body?: string; privileged?: boolean; signal: AbortSignal },
): Promise<string | undefined> {
  const failed = (why: string) => new Error(`fetch "${url}": ${why}`)
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeout)])
  let response: Response
  try {
    response = privileged
      ? await fetchFromPort(url, { ports: privilegedPorts(), headers, limit: longest, signal: limit })
      : await fetch(url, { method, headers: { ...headers }, body, signal: limit, redirect: 'manual' })
  } catch (error) {
    const [line = ''] = messageOf(error).split('\n')
    throw failed(limit.aborted ? `no answer within ${timeout / 1000} s` : line)
  }
  if (!response.ok) {
    await response.body?.cancel()
    if (response.status === 404 || response.status === 410) return undefined
    throw failed(`the server answered ${response.status}`)
  }
  const whole = await boundedBody(response, longest).catch((error) => {
    throw failed(limit.aborted ? 'response incomplete after timeout' : messageOf(error))
  })
  return whole.toString()
}

type Disks = Pick<Dependencies, 'files' | 'mount' | 'store'>

function readDisk({ files, mount, store }: Disks, labels: readonly string[], names: readonly string[]): Map<string, string> | undefined {
  const volume = store.list(DiscoveredVolume).find(({ spec }) => spec.label !== undefined && labels.includes(spec.label))?.spec
  const label = labels.find((one) => files.exists(`/dev/disk/by-label/${one}`))
  const device = volume?.dev_path ?? (label && `/dev/disk/by-label/${label}`)
  if (!device) return undefined
  let last: unknown
  for (const type of volume?.name ? [volume.name] : fileSystems) {
    const read = tryRead({ files, mount }, { device, type }, names)
    if (read instanceof Map) return read
    last = read.error
  }
  throw last
}

/** The medium of the first optical drive that has one of this type and one of the files. */
function readOptical(machine: Pick<Disks, 'files' | 'mount'>, type: string, names: readonly string[]): Map<string, string> | undefined {
  for (let drive = 0; drive < opticalDrives; drive++) {
    const device = `/dev/sr${drive}`
    if (!machine.files.exists(device)) continue
    const read = tryRead(machine, { device, type }, names)
    // A drive without a medium, or with another one, is not the platform's.
    if (read instanceof Map && read.size > 0) return read
  }
  return undefined
}

/** Files of a device by name, or why it cannot be mounted. */
function tryRead(
  { files, mount }: Pick<Disks, 'files' | 'mount'>,
  { device, type }: { device: string; type: string },
  names: readonly string[],
): Map<string, string> | { error: unknown } {
  files.mkdirAll(place, { mode: 0o700 })
  try {
    mount.mount({ source: device, target: place, type, flags: ['ro', 'nosuid', 'nodev', 'noexec'] })
  } catch (error) {
    return { error }
  }
  try {
    const found = names.map((name) => [name, files.readTextIfThere(`${place}/${name}`)] as const)
    return new Map(found.filter((entry): entry is [string, string] => entry[1] !== undefined))
  } finally {
    mount.umount(place)
  }
}
