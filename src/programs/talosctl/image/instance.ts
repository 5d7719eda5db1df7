import { Option } from 'commander'
import { common } from '../../../rpc/enums.ts'

/** Whose images: those of pods, those of the system's services, or those of the system's own daemon, which lie in memory. */
export type ImageNamespace = 'cri' | 'system' | 'inmem'

/** Declares the flag. */
export function imageNamespaceOption(standard: ImageNamespace): Option {
  return new Option('--namespace <namespace>', 'whose images').choices(['cri', 'system', 'inmem']).default(standard)
}

/** The daemon and its namespace as requests say it. */
export function imageInstance(namespace: ImageNamespace): { driver: number; namespace: number } {
  const { CRI, CONTAINERD } = common.ContainerDriver
  return { driver: namespace === 'inmem' ? CONTAINERD : CRI, namespace: legacyImageNamespace(namespace) }
}

/** The namespace alone, for nodes that know nothing else. */
export function legacyImageNamespace(namespace: ImageNamespace): number {
  return namespace === 'cri' ? common.ContainerdNamespace.NS_CRI : common.ContainerdNamespace.NS_SYSTEM
}
