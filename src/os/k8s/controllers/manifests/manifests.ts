import { defineController, shared, weak } from '../../../../cosi/controller.ts'
import { KubernetesRootSecret } from '../../../secrets/resources/kubernetes-root-secret.ts'
import { bootstrapManifests } from '../../manifests/manifests.ts'
import { BootstrapManifestsConfig } from '../../resources/bootstrap-manifests-config.ts'
import { Manifest } from '../../resources/manifest.ts'

/** The manifests of a new cluster. */
export const renderManifests = defineController({
  name: 'k8s.ManifestController',
  effects: 'none',
  inputs: { config: weak(BootstrapManifestsConfig, { id: 'manifests' }), roots: weak(KubernetesRootSecret, { id: 'k8s' }) },
  outputs: { manifests: shared(Manifest) },
  reconcile({ config, roots, manifests }) {
    const given = config.get('manifests')?.spec
    const root = roots.get('k8s')?.spec
    if (!given || !root) return
    for (const [id, objects] of Object.entries(bootstrapManifests(given, root))) manifests.put(id, objects)
  },
})
