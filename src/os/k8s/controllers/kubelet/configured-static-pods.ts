import { defineController, shared, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { kubernetesConfigOf } from '../../machine-config.ts'
import { StaticPod } from '../../resources/static-pod.ts'

/** Static pods from the machine configuration. */
export const configStaticPods = defineController({
  name: 'k8s.StaticPodConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { pods: shared(StaticPod) },
  reconcile({ config, pods, log }) {
    for (const pod of kubernetesConfigOf(config.get('v1alpha1'))?.machine?.pods ?? []) {
      const { name, namespace = 'default' } = (pod.metadata ?? {}) as { name?: string; namespace?: string }
      if (!name) {
        log.error('a pod of machine.pods has no metadata.name and is left out: give it one')
        continue
      }
      pods.put(`${namespace}-${name}`, pod)
    }
  },
})
