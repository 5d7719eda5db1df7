/** When changed settings take effect: most at once, some when something starts the next time, some only with a reboot. */
import { formatPath } from '../../../document/path.ts'
import { type Change, isBelow } from '../history/changes.ts'

/** Sections that are read once at boot, and changes that a running machine cannot make. */
const atBoot: readonly string[] = ['machine.type', 'machine.token', 'cluster.id', 'cluster.secret', 'machine.files']

/** The same for machines with a kernel of their own: modules are locked, and devices are named, once the boot is complete. */
const atMetalBoot: readonly string[] = ['machine.udev', 'machine.kernel.modules']

/** What waits for something else than a reboot. */
const later: readonly (readonly [path: string, when: string])[] = [
  ['cluster.etcd', 'service "etcd" next starts'],
  ['machine.env', 'services next start'],
  ['machine.install', 'the machine is next upgraded'],
]

/** The files of `machine.files` that are read whenever they change. */
const livePath = /^\/etc\/cri\/conf\.d\//

/** The changed sections that take effect only with a reboot. */
export function needsReboot(changes: readonly Change[], mode: 'container' | 'metal'): string[] {
  const paths = mode === 'metal' ? [...atBoot, ...atMetalBoot] : atBoot
  return paths.filter((path) => changes.some((change) => isBelow(change, [path]) && !isLive(path, change)))
}

/** The changes that take effect later without a reboot, as text. */
export function takesEffectLater(changes: readonly Change[]): string[] {
  return later.flatMap(([path, when]) => {
    const changed = changes.filter((change) => isBelow(change, [path])).map((change) => formatPath(change.path))
    return changed.length > 0 ? [`${changed.join(', ')} when ${when}`] : []
  })
}

/** Whether a controller writes the file whenever it changes. */
function isLive(prefix: string, { before, after }: Change): boolean {
  if (prefix !== 'machine.files') return false
  const files = [before, after].flat().filter((each) => each !== undefined)
  return files.length > 0 && files.every((file) => livePath.test(String((file as { path?: string } | null)?.path ?? '')))
}
