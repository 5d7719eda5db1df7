import type { Channel } from '../../rpc/client/channel.ts'
import { common as enums } from '../../rpc/enums.ts'
import type { common } from '../../rpc/messages.ts'
import { RpcError } from '../../rpc/status.ts'
import { criDaemon, systemDaemon } from './daemons.ts'

const { CRI, CONTAINERD } = enums.ContainerDriver
const { NS_UNKNOWN, NS_CRI, NS_SYSTEM } = enums.ContainerdNamespace

/** The daemon and namespace of a request: the daemon by its driver; the pods' images by default. Throws RpcError. */
export function channelOfInstance(instance: common.ContainerdInstance | undefined): Channel {
  const { driver, namespace } = instance ?? { driver: CRI, namespace: NS_CRI }
  const known = namespace === NS_UNKNOWN || namespace === NS_CRI || namespace === NS_SYSTEM
  if (driver === CONTAINERD && known && namespace !== NS_CRI) return systemDaemon.in('system')
  if (driver === CRI && known) return criDaemon.in(namespace === NS_SYSTEM ? 'system' : 'k8s.io')
  throw new RpcError('InvalidArgument', 'no such daemon: give driver CRI with namespace cri or system, or driver CONTAINERD with system')
}
