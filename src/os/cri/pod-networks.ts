import { common } from '../../rpc/enums.ts'
import type { NetworkOf } from '../network/public.ts'
import { listContainers } from './containers.ts'

/** Network namespaces of running pods, each with the process id of its sandbox. */
export async function podNetworks(): Promise<NetworkOf[]> {
  const containers = await listContainers('k8s.io', common.ContainerDriver.CRI)
  const found = new Map<string, NetworkOf>()
  for (const { networkNamespace: name, pid } of containers) if (name !== '' && pid !== 0) found.set(name, { name, pid })
  return [...found.values()]
}
