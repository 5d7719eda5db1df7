import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { MachineType } from '../../../config/resources/machine-type.ts'
import type { Mode } from '../../../kernel.ts'
import { buildArguments, denied, overwrite } from '../../arguments.ts'
import { kubeletConfiguration } from '../../kubelet/configuration.ts'
import { credentialProviderFile } from '../../kubelet/files.ts'
import { credentialProviders } from '../../kubelet/mounts.ts'
import { KubeletConfig, KubeletSpec } from '../../resources/kubelet.ts'
import { NodeTaintSpec } from '../../resources/node.ts'
import { NodeIP } from '../../resources/node-ip.ts'
import { Nodename } from '../../resources/nodename.ts'

/** What does not change while the node runs. */
interface KubeletSurvey {
  readonly mode: Mode
  readonly oomFloor?: number
  /** Bytes of memory that the kubelet sees and the node may not use. */
  readonly hiddenMemory?: () => number
}

/** The kubelet's command line and configuration file. */
export const specKubelet = ({ mode, oomFloor, hiddenMemory = () => 0 }: KubeletSurvey): Controller =>
  defineController({
    name: 'k8s.KubeletSpecController',
    effects: 'none',
    inputs: {
      config: weak(KubeletConfig, { id: 'kubelet' }),
      nodename: weak(Nodename, { id: 'nodename' }),
      nodeIP: weak(NodeIP, { id: 'kubelet' }),
      machineType: weak(MachineType, { id: 'machine-type' }),
      nodeTaints: weak(NodeTaintSpec),
    },
    outputs: { kubelet: exclusive(KubeletSpec) },
    reconcile({ config, nodename, nodeIP, machineType, nodeTaints, kubelet }) {
      const given = config.get('kubelet')?.spec
      const name = nodename.get('nodename')?.spec.nodename
      const type = machineType.get('machine-type')?.spec
      const addresses = nodeIP.get('kubelet')?.spec.addresses
      // The operator may set the address; without one the kubelet would choose any.
      const theirs = given?.extraArgs?.['node-ip']
      if (!given || !name || !type || (!addresses && !theirs)) return
      const args = kubeletArguments(given, { name, addresses })
      kubelet.put('kubelet', {
        image: given.image,
        args,
        ...(given.extraMounts && { extraMounts: given.extraMounts }),
        expectedNodename: given.extraArgs?.['hostname-override'] ? undefined : name,
        config: kubeletConfiguration(given, {
          mode,
          oomFloor,
          hiddenMemory: hiddenMemory(),
          controlPlane: type !== 'worker',
          taints: nodeTaints.list().map(({ spec }) => spec),
        }),
        ...(given.credentialProviderConfig && { credentialProviderConfig: given.credentialProviderConfig }),
      })
    },
  })

/** The kubelet's command line after its name. */
export function kubeletArguments(
  given: SpecOf<typeof KubeletConfig>,
  { name, addresses }: { name: string; addresses?: string[] | undefined },
): string[] {
  return buildArguments(
    'kubelet',
    {
      config: denied('/etc/kubernetes/kubelet.yaml'),
      'cert-dir': denied('/var/lib/kubelet/pki'),
      'hostname-override': overwrite(name),
      'bootstrap-kubeconfig': denied(given.skipNodeRegistration ? undefined : '/etc/kubernetes/bootstrap-kubeconfig'),
      kubeconfig: denied(given.skipNodeRegistration ? undefined : '/etc/kubernetes/kubeconfig-kubelet'),
      'cloud-provider': overwrite(given.cloudProviderExternal ? 'external' : undefined),
      'container-runtime': denied(),
      'container-runtime-endpoint': denied(),
      'node-ip': overwrite(addresses),
      ...(given.credentialProviderConfig && {
        'image-credential-provider-bin-dir': denied(credentialProviders),
        'image-credential-provider-config': denied(credentialProviderFile),
      }),
    },
    given.extraArgs,
  )
}
