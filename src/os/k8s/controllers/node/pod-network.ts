import { type Controller, defineController, weak } from '../../../../cosi/controller.ts'
import { addressOnly } from '../../../../wire/prefix.ts'
import type { Machine } from '../../../area.ts'
import { serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { AddressStatus } from '../../../network/resources/address.ts'
import { LinkStatus } from '../../../network/resources/link.ts'
import { kubernetesConfigOf } from '../../machine-config.ts'
import { podNetworkConflist, vxlanOverhead } from '../../pod-network.ts'
import { NodeStatus } from '../../resources/node.ts'
import { NodeIP } from '../../resources/node-ip.ts'
import { Nodename } from '../../resources/nodename.ts'
import { serviceGuard, setServiceGuard } from '../../service-guard.ts'

const folder = '/etc/cni/net.d'
const file = `${folder}/10-flannel.conflist`

/** Milliseconds until rules that nft refused are set again. */
const guardRetryInterval = 60_000

/** The kernel calls that writing the configuration takes. */
type Files = Pick<Kernel['files'], 'mkdirAll' | 'readTextIfThere' | 'writeAtomic' | 'removeFile'>

/**
 * Writes the CNI configuration when the cluster's network is flannel, as soon as the node has its pod CIDRs. Another network
 * plugin brings its own file.
 */
export function configurePodNetwork({ kernel: { files }, spawn }: Pick<Machine, 'spawn'> & { kernel: { files: Files } }): Controller {
  let guarded = ''
  return defineController({
    name: 'k8s.PodNetworkController',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      nodename: weak(Nodename, { id: 'nodename' }),
      status: weak(NodeStatus),
      nodeIP: weak(NodeIP, { id: 'kubelet' }),
      addresses: weak(AddressStatus),
      links: weak(LinkStatus),
    },
    outputs: {},
    async reconcile({ config, nodename, status, nodeIP, addresses, links, log, wakeIn }) {
      const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
      if (!machineConfig) return
      if ((machineConfig.cluster?.network?.cni?.name || 'flannel') !== 'flannel') {
        if (files.readTextIfThere(file) !== undefined) files.removeFile(file)
        return
      }
      const podCIDRs = status.get(nodename.get('nodename')?.spec.nodename ?? '')?.spec.podCIDRs ?? []
      if (podCIDRs.length === 0) return
      const guard = serviceGuard(serviceSubnets(machineConfig.cluster))
      if (guard !== guarded) {
        try {
          await setServiceGuard(spawn, guard)
          guarded = guard
        } catch (error) {
          log.warn('set service guard failed, early connections of pods may hang', { error })
          wakeIn(guardRetryInterval)
        }
      }
      const own = nodeIP.get('kubelet')?.spec.addresses[0]
      const linkName = addresses.list().find(({ spec }) => addressOnly(spec.address) === own)?.spec.linkName
      const mtu = (linkName ? links.get(linkName)?.spec.mtu : undefined) ?? 1500
      const content = podNetworkConflist({ podCIDRs, mtu: mtu - vxlanOverhead })
      if (files.readTextIfThere(file) === content) return
      files.mkdirAll(folder, { mode: 0o755 })
      await files.writeAtomic(file, content, { mode: 0o644 })
      log.info('pod network configured', { subnets: podCIDRs, mtu: mtu - vxlanOverhead })
    },
  })
}
