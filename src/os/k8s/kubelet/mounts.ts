/**
 * The mounts of the kubelet's container.
 *
 * Shared mounts propagate both ways: a mount below one appears on the node too, and stays there when the container ends. A mount
 * that the container made there itself would be left on the node after each start. `/sys` and `/dev` are therefore slaves, and an
 * extra mount of the configuration below a shared one is made on the node, once, where the container sees it. All other extra
 * mounts are the container's own.
 */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { IdMapping, SpecMount } from '../../../supervise/containerd/spec.ts'
import { bindMount } from '../../cri/public.ts'
import type { Kernel } from '../../kernel.ts'
import { sharedPaths } from '../documents/shared-paths.ts'
import type { KubeletSpec } from '../resources/kubelet.ts'

type SpecifiedMount = NonNullable<SpecOf<typeof KubeletSpec>['extraMounts']>[number]
type ExtraMount = Pick<SpecifiedMount, 'destination' | 'type' | 'source' | 'options'> & Partial<SpecifiedMount>

/** Folders that the kubelet expects. */
export const kubeletFolders = [
  { path: '/etc/kubernetes', mode: 0o700 },
  { path: '/usr/libexec/kubernetes', mode: 0o755 },
  { path: '/var/lib/containerd', mode: 0o000 },
  { path: '/var/lib/kubelet', mode: 0o700 },
  { path: '/var/log/containers', mode: 0o755 },
  { path: '/var/log/pods', mode: 0o755 },
  { path: '/var/mnt', mode: 0o755 },
  { path: '/run', mode: 0o755 },
]

/** Programs that give the kubelet credentials for registries; an extra mount may bring some. */
export const credentialProviders = '/usr/local/lib/kubelet/credentialproviders'

/** Files of the node that the kubelet reads, if present. */
const readFiles = ['/etc/hosts', '/etc/machine-id', '/etc/os-release', '/etc/resolv.conf', '/etc/ssl', '/lib/modules', '/system/resolved']

/** A mount that is made on the node, for the kubelet and everything else. */
export interface NodeMount {
  readonly source: string
  readonly target: string
  readonly type: string
  readonly options: readonly string[]
}

/** The mounts in the container, and those on the node for it. */
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
    // A container node has its own boot id below its /proc; the processes are the same.
    ...(mode === 'container' ? [bindMount('/proc', { writable: true, options: ['rslave'] })] : []),
    bindMount('/dev', { writable: true, options: ['rslave'] }),
    bindMount('/sys', { options: ['rslave'] }),
    bindMount('/sys/fs/cgroup', { writable: true, options: ['rshared'] }),
    ...readFiles.filter(files.exists).map((path) => bindMount(path)),
    ...[credentialProviders].filter(files.exists).map((path) => bindMount(path, { options: ['rprivate'] })),
    ...sharedPaths.map((path) => bindMount(path, { writable: true, options: ['rshared'] })),
  ]
  const node: NodeMount[] = []
  const views = container.map(viewOf)
  for (const { destination, type, source, options = [], uidmappings = [], gidmappings = [] } of extraMounts) {
    const target = onNode(destination, views)
    const mapped = uidmappings.length > 0
    if (target === undefined) {
      container.push({
        ...{ destination, type, source, options },
        ...(mapped && { uidMappings: uidmappings.map(mappingOf), gidMappings: gidmappings.map(mappingOf) }),
      })
      views.push(viewOf({ destination, type, source, options }))
    } else {
      if (mapped)
        throw new Error(`machine.kubelet.extraMounts: owners are not mapped at "${destination}", which the node shares: mount it elsewhere`)
      views.push({ destination, node: isApart(options) ? undefined : target })
      // Bound to its own path, it is there already.
      if (!isBind({ type, options }) || source !== target || options.includes('ro')) node.push({ source, target, type, options })
    }
  }
  return { container, node }
}

function mappingOf({ containerid, hostid, size }: SpecifiedMount['uidmappings'][number]): IdMapping {
  return { containerID: containerid, hostID: hostid, size }
}

/** A mount point in the container, and the same path on the node, if the two share what is mounted there. */
interface View {
  readonly destination: string
  readonly node: string | undefined
}

function viewOf({ destination, type, source, options = [] }: SpecMount): View {
  return { destination, node: isBind({ type, options }) && !isApart(options) ? source : undefined }
}

/** Whether mounts below it stay in the container. */
const isApart = (options: readonly string[]) => options.some((option) => /^r?(private|slave|unbindable)$/.test(option))

const isBind = ({ type, options }: { type?: string | undefined; options: readonly string[] }) =>
  type === 'bind' || options.includes('bind') || options.includes('rbind')

/** Where on the node a mount in the container would appear too: the last mount covers earlier ones. */
function onNode(path: string, views: readonly View[]): string | undefined {
  const under = views.findLast(({ destination }) => path === destination || path.startsWith(`${destination}/`))
  return under?.node === undefined ? undefined : `${under.node}${path.slice(under.destination.length)}`
}
