import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { defaultImages } from '../../k8s/images.ts'
import { extraArgsOf, isControlPlane, kubernetesConfigOf } from '../../k8s/machine-config.ts'
import { sharedAddresses } from '../../network/shared-addresses.ts'
import { EtcdConfig } from '../resources/etcd-config.ts'

/** What the machine configuration says about etcd. */
export const configEtcd = defineController({
  name: 'etcd.ConfigController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { etcd: exclusive(EtcdConfig) },
  reconcile({ config, etcd }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const given = machineConfig.cluster?.etcd
    const found = declared(config.get('v1alpha1'))
    const advertised = given?.advertisedSubnets?.length ? given.advertisedSubnets : given?.subnet ? [given.subnet] : []
    const listen = given?.listenSubnets?.length ? given.listenSubnets : advertised
    const [advertiseValidSubnets, advertiseExcludeSubnets] = divided(advertised)
    const [listenValidSubnets, listenExcludeSubnets] = divided(listen)
    etcd.put('etcd', {
      ...(advertiseValidSubnets.length > 0 && { advertiseValidSubnets }),
      // A shared address is with another node tomorrow.
      advertiseExcludeSubnets: [...advertiseExcludeSubnets, ...sharedAddresses(found?.machine.network?.interfaces, found?.documents ?? [])],
      ...(listenValidSubnets.length > 0 && { listenValidSubnets }),
      listenExcludeSubnets,
      image: given?.image || defaultImages.etcd,
      extraArgs: extraArgsOf(given?.extraArgs),
    })
  },
})

function divided(subnets: readonly string[]): [valid: string[], excluded: string[]] {
  const out = subnets.filter((subnet) => subnet.startsWith('!')).map((subnet) => subnet.slice(1))
  return [subnets.filter((subnet) => !subnet.startsWith('!')), out]
}
