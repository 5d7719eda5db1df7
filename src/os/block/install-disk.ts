/** Selects the install disk: the one named in the configuration, or the only match of its selector. */
import type * as v from 'valibot'
import { parseByteSize } from '../../document/quantity.ts'
import type { StatusName } from '../../rpc/status.ts'
import { apiStatus } from '../../wire/api-status.ts'
import { matchesWildcard } from '../../wire/wildcard.ts'
import type { install } from '../lifecycle/documents/install.ts'
import type { DiskContent } from './disk-content.ts'
import { describeContent } from './disk-content.ts'
import { diskCondition } from './documents/expression.ts'
import type { Disk } from './resources/disk.ts'
import { isLoop } from './volumes/view.ts'

/** A disk of the machine and its content. */
export interface KnownDisk {
  id: string
  spec: v.InferOutput<(typeof Disk)['schema']>
  /** Undefined if the disk was not probed. */
  content?: DiskContent
}

type Section = v.InferOutput<typeof install>
type Selector = NonNullable<Section['diskSelector']>
type Selection = Pick<Section, 'disk' | 'diskSelector'>

/** No disk matches, or several do. The message lists all disks. */
export class InstallDiskError extends Error {
  override name = 'InstallDiskError'

  get [apiStatus](): StatusName {
    return 'InvalidArgument'
  }
}

/** Selects the disk to install on. Throws InstallDiskError. */
export function chooseInstallDisk(all: readonly KnownDisk[], { disk, diskSelector }: Selection): KnownDisk {
  const disks = all.filter(({ id, spec }) => !isLoop(id) || spec.dev_path === disk)
  const usable = disks.filter(({ spec }) => !spec.readonly && !spec.cdrom && spec.size > 0)
  if (disk && /^\/dev\/(md|dm-|mapper\/)|\/(md|dm)-(name|uuid)-/.test(disk))
    throw new InstallDiskError(
      `choose install disk: "${disk}" is an array or a logical volume, from which no firmware starts: set machine.install.disk to a disk`,
    )
  const refuse = (why: string): never => {
    throw new InstallDiskError(`${why}; the disks of this machine are: ${describeDisks(disks)}`)
  }
  if (diskSelector && Object.values(diskSelector).some((value) => value !== undefined)) {
    const found = usable.filter(({ spec }) => fits(spec, diskSelector))
    const selector = JSON.stringify(diskSelector)
    const [only] = found
    if (!only) return refuse(`choose install disk: no disk matches machine.install.diskSelector ${selector}`)
    if (found.length > 1)
      return refuse(
        `choose install disk: ${found.map(({ spec }) => spec.dev_path).join(' and ')} match machine.install.diskSelector ${selector}, make it match one`,
      )
    return only
  }
  if (!disk) return refuse('choose install disk: the configuration names none, set machine.install.disk or diskSelector')
  const found = disks.find(({ id, spec }) => spec.dev_path === disk || id === disk || spec.symlinks?.includes(disk))
  if (!found) return refuse(`choose install disk: there is no disk "${disk}"`)
  if (found.spec.cdrom || found.spec.readonly) return refuse(`choose install disk: "${disk}" cannot be written to`)
  return found
}

/** Lists all disks in one line: name, model, serial, size and content. */
export function describeDisks(disks: readonly KnownDisk[]): string {
  if (disks.length === 0) return 'none'
  return disks
    .map(({ spec, content }) => {
      const properties = [
        spec.model && `model "${spec.model}"`,
        spec.serial && `serial "${spec.serial}"`,
        spec.pretty_size,
        spec.readonly && 'read-only',
      ]
      return `${spec.dev_path} (${properties.filter(Boolean).join(', ')}${content ? `, holds ${describeContent(content)}` : ''})`
    })
    .join('; ')
}

/** Whether a disk satisfies every condition of a selector. */
function fits(spec: KnownDisk['spec'], selector: Selector): boolean {
  const { size, type, name, model, serial, modalias, uuid, wwid, busPath, match } = selector
  const texts = [
    [model, spec.model],
    [serial, spec.serial],
    [modalias, spec.modalias],
    [uuid, spec.uuid],
    [wwid, spec.wwid],
    [busPath, spec.bus_path],
  ] as const
  if (texts.some(([wanted, present]) => wanted && !matchesWildcard(wanted, present ?? ''))) return false
  if (name && ![spec.dev_path, spec.dev_path.replace('/dev/', '')].some((each) => matchesWildcard(name, each))) return false
  if (type && type !== diskType(spec)) return false
  if (size && !matchesSize(spec.size, size)) return false
  return !match || diskCondition(match)({ disk: spec, systemDisk: false })
}

/** The disk type, named as in the configuration. */
export function diskType({ transport, rotational }: Pick<KnownDisk['spec'], 'transport' | 'rotational'>): 'nvme' | 'sd' | 'hdd' | 'ssd' {
  if (transport === 'nvme') return 'nvme'
  if (transport === 'mmc') return 'sd'
  return rotational ? 'hdd' : 'ssd'
}

/** Compares a size with a condition like ">= 10GB". Without an operator the sizes must be equal. */
function matchesSize(size: number, condition: string): boolean {
  const [, sign = '==', amount = ''] = /^(==|>=|<=|>|<)?(.*)$/s.exec(condition.trim()) ?? []
  const wanted = parseByteSize(amount.trim())
  if (wanted === undefined) return false
  switch (sign) {
    case '>=':
      return size >= wanted
    case '<=':
      return size <= wanted
    case '>':
      return size > wanted
    case '<':
      return size < wanted
    default:
      return size === wanted
  }
}
