import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { annotated, defaultImages, extraArgsOf, inEffect, isControlPlane, kubernetesConfigOf } from '../../k8s/public.ts'
import { ComponentFallback } from '../../k8s/resources/component.ts'
import { sharedAddresses } from '../../network/public.ts'
import { EtcdConfig } from '../resources/etcd-config.ts'

/** etcd's configuration from the machine configuration. */
export const configEtcd = defineController({
  name: 'etcd.ConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'etcd' }) },
  outputs: { etcd: exclusive(EtcdConfig) },
  reconcile({ config, fallbacks, etcd }) {
    const machineConfig = inEffect('etcd', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('etcd'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const given = machineConfig.cluster?.etcd
    const found = declared(config.get('v1alpha1'))
    const advertised = given?.advertisedSubnets?.length ? given.advertisedSubnets : given?.subnet ? [given.subnet] : []
    const listen = given?.listenSubnets?.length ? given.listenSubnets : advertised
    const [advertiseValidSubnets, advertiseExcludeSubnets] = divided(advertised)
    const [listenValidSubnets, listenExcludeSubnets] = divided(listen)
    etcd.put(
      'etcd',
      {
        ...(advertiseValidSubnets.length > 0 && { advertiseValidSubnets }),
        // A virtual IP may move to another node.
        advertiseExcludeSubnets: [...advertiseExcludeSubnets, ...sharedAddresses(found)],
        ...(listenValidSubnets.length > 0 && { listenValidSubnets }),
        listenExcludeSubnets,
        image: given?.image || defaultImages.etcd,
        extraArgs: extraArgsOf(given?.extraArgs),
      },
      { annotations: annotated('etcd', machineConfig) },
    )
  },
})

function divided(subnets: readonly string[]): [valid: string[], excluded: string[]] {
  const out = subnets.filter((subnet) => subnet.startsWith('!')).map((subnet) => subnet.slice(1))
  return [subnets.filter((subnet) => !subnet.startsWith('!')), out]
}
