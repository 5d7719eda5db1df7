/**
 * The mounts of the kubelet's container, in prose.
 *
 * What the node and the container share travels both ways: a mount below it appears on the node too, and stays there when the
 * container goes. Whatever the container mounted there itself would be on the node once more after each start. `/sys` and `/dev`
 * are therefore slaves, and an extra mount of the configuration below something shared is made on the node, once; the container
 * sees it there. All other extra mounts are the container's own.
 */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { SpecMount } from '../../../supervise/containerd/spec.ts'
import { bindMount } from '../../cri/service-container.ts'
import type { Kernel } from '../../kernel.ts'
import type { KubeletSpec } from '../resources/kubelet.ts'

type ExtraMount = Pick<NonNullable<SpecOf<typeof KubeletSpec>['extraMounts']>[number], 'destination' | 'type' | 'source' | 'options'>

/** Folders that the kubelet and the pods' containers see alike. */
export const sharedFolders = [
  { path: '/etc/kubernetes', mode: 0o700 },
  { path: '/usr/libexec/kubernetes', mode: 0o755 },
  { path: '/var/lib/containerd', mode: 0o000 },
  { path: '/var/lib/kubelet', mode: 0o700 },
  { path: '/var/log/containers', mode: 0o755 },
  { path: '/var/log/pods', mode: 0o755 },
  { path: '/var/mnt', mode: 0o755 },
  { path: '/run', mode: 0o755 },
]

/** Files of the node that the kubelet reads, where there are any. */
const readFiles = ['/etc/hosts', '/etc/machine-id', '/etc/os-release', '/etc/resolv.conf', '/lib/modules', '/system/resolved']

/** A mount that is made on the node, for the kubelet and everyone else. */
export interface NodeMount {
  readonly source: string
  readonly target: string
  readonly type: string
  readonly options: readonly string[]
}

/** What the container mounts, and what the node mounts for it. */
export interface KubeletMounts {
  readonly container: SpecMount[]
  readonly node: NodeMount[]
}

/** All mounts of the kubelet. */
export function kubeletMounts(
  { mode, files }: { mode: Kernel['mode']; files: Pick<Kernel['files'], 'exists'> },
  extraMounts: readonly ExtraMount[] = [],
): KubeletMounts {
  const container: SpecMount[] = [
    // A container node has a boot id of its own below its /proc; the processes are the same ones.
    ...(mode === 'container' ? [bindMount('/proc', { writable: true, options: ['rslave'] })] : []),
    bindMount('/dev', { writable: true, options: ['rslave'] }),
    bindMount('/sys', { options: ['rslave'] }),
    bindMount('/sys/fs/cgroup', { writable: true, options: ['rshared'] }),
    ...readFiles.filter(files.exists).map((path) => bindMount(path)),
    ...sharedFolders.map(({ path }) => bindMount(path, { writable: true, options: ['rshared'] })),
  ]
  const node: NodeMount[] = []
  const views = container.map(viewOf)
  for (const { destination, type, source, options = [] } of extraMounts) {
    const target = onNode(destination, views)
    if (target === undefined) {
      container.push({ destination, type, source, options })
      views.push(viewOf({ destination, type, source, options }))
    } else {
      views.push({ destination, node: isApart(options) ? undefined : target })
      // Bound to its own place it is there already.
      if (!isBind({ type, options }) || source !== target || options.includes('ro')) node.push({ source, target, type, options })
    }
  }
  return { container, node }
}

/** A mount point in the container, and the same place on the node, if the two share what is mounted there. */
interface View {
  readonly destination: string
  readonly node: string | undefined
}

function viewOf({ destination, type, source, options = [] }: SpecMount): View {
  return { destination, node: isBind({ type, options }) && !isApart(options) ? source : undefined }
}

/** Whether what is mounted below stays there. */
const isApart = (options: readonly string[]) => options.some((option) => /^r?(private|slave|unbindable)$/.test(option))

const isBind = ({ type, options }: { type?: string; options: readonly string[] }) =>
  type === 'bind' || options.includes('bind') || options.includes('rbind')

/** Where on the node a mount in the container would appear too: what was mounted last lies uppermost. */
function onNode(path: string, views: readonly View[]): string | undefined {
  const under = views.findLast(({ destination }) => path === destination || path.startsWith(`${destination}/`))
  return under?.node === undefined ? undefined : `${under.node}${path.slice(under.destination.length)}`
}
