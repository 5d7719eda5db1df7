import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { kubeClient } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import type { KubeObject } from '../../../../kube/object.ts'
import type { Machine } from '../../../area.ts'
import { Service } from '../../../runtime/resources/service.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { apiReady, applyManifests } from '../../apply-manifests.ts'
import { Manifest, ManifestStatus } from '../../resources/manifest.ts'

/** The lock held while one of the control plane nodes applies. */
const mutex = 'talos:v1:manifestApplyMutex'

/** Applies the manifests as soon as the API answers, one control plane node at a time. */
export function applyAllManifests({ elect }: Pick<Machine, 'elect'>): Controller {
  let applied = ''
  return defineController({
    name: 'k8s.ManifestApplyController',
    inputs: {
      secrets: weak(KubernetesSecret, { id: 'k8s-certs' }),
      manifests: weak(Manifest),
      services: weak(Service, { id: 'etcd' }),
    },
    outputs: { status: exclusive(ManifestStatus) },
    reconcile({ secrets, manifests, services, status, log, background }) {
      const kubeconfig = secrets.get('k8s-certs')?.spec.localhostAdminKubeconfig
      const wanted = manifests.list().map(({ metadata: { id }, spec }) => ({ id, objects: spec as KubeObject[] }))
      if (!kubeconfig || wanted.length === 0) return
      const key = Bun.hash(JSON.stringify(wanted)).toString(36)
      if (applied === key) return status.put('manifests', { manifestsApplied: wanted.map(({ id }) => id) })
      status.keep('manifests')
      if (!services.get('etcd')?.spec.healthy) return
      // Credentials of a replaced authority would fail forever.
      background({ name: 'apply manifests', of: `${key} ${Bun.hash(kubeconfig).toString(36)}` }, async (signal, wake) => {
        const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
        try {
          await apiReady(client, signal)
          const held = AbortSignal.any([signal, AbortSignal.timeout(300_000)])
          await elect(mutex, (holding) => applyManifests(client, wanted, { log, signal: holding }), held)
          log.info('manifests applied', { manifests: wanted.length })
          applied = key
          wake()
        } finally {
          client.close()
        }
      })
    },
  })
}
