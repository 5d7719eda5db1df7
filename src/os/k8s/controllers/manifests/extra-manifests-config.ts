import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { isControlPlane, kubernetesConfigOf } from '../../machine-config.ts'
import { ExtraManifestsConfig } from '../../resources/extra-manifests-config.ts'

/** Manifests of the operator, by URL or inline; a lower priority number is applied earlier. */
export const configExtraManifests = defineController({
  name: 'k8s.ControlPlaneExtraManifestsController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { manifests: exclusive(ExtraManifestsConfig) },
  reconcile({ config, manifests }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const { cluster } = machineConfig
    const cni = cluster?.network?.cni
    const byAddress = (priority: string, urls: readonly string[] | undefined, extraHeaders: Record<string, string> = {}) =>
      (urls ?? []).map((url) => ({ name: url, url, priority, extraHeaders, inlineManifest: '' }))
    const cloud = cluster?.externalCloudProvider
    manifests.put('extra-manifests', {
      extraManifests: [
        ...byAddress('05', cni?.name === 'custom' ? cni.urls : []),
        ...byAddress('30', cloud?.enabled ? cloud.manifests : []),
        ...byAddress('99', cluster?.extraManifests, cluster?.extraManifestHeaders),
        ...(cluster?.inlineManifests ?? []).map(({ name = '', contents = '' }) => ({
          name,
          url: '',
          priority: '99',
          extraHeaders: {},
          inlineManifest: contents,
        })),
      ],
    })
  },
})
