import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { Service } from '../../runtime/resources/service.ts'
import { KubernetesDynamicCert } from '../../secrets/resources/kubernetes-dynamic-cert.ts'
import { KubernetesRootSecret } from '../../secrets/resources/kubernetes-root-secret.ts'
import { pemOf } from '../rendered-files.ts'
import { Nodename } from '../resources/nodename.ts'
import { StaticPodStatus } from '../resources/static-pod-status.ts'

const period = 5000
const limit = 5000

/** How the static pods fare, asked of this node's kubelet, which knows even when there is no API server. */
export function observeStaticPods(): Controller {
  return defineController({
    name: 'k8s.KubeletStaticPodController',
    inputs: {
      nodename: weak(Nodename, { id: 'nodename' }),
      services: weak(Service, { id: 'kubelet' }),
      certificates: weak(KubernetesDynamicCert, { id: 'k8s-dynamic-certs' }),
      roots: weak(KubernetesRootSecret, { id: 'k8s' }),
    },
    outputs: { status: exclusive(StaticPodStatus) },
    async reconcile({ nodename, services, certificates, roots, status, signal, wakeIn, log }) {
      const name = nodename.get('nodename')?.spec.nodename
      const client = certificates.get('k8s-dynamic-certs')?.spec.apiServerKubeletClient
      if (!name || !client || !roots.get('k8s') || !services.get('kubelet')?.spec.healthy) return
      wakeIn(period)
      let pods: KubeObject[]
      try {
        const response = await fetch('https://127.0.0.1:10250/pods/?timeout=5s', {
          // The kubelet's own certificate is self-signed; on loopback nobody else can be there.
          tls: { cert: pemOf(client.crt), key: pemOf(client.key), rejectUnauthorized: false },
          signal: AbortSignal.any([signal, AbortSignal.timeout(limit)]),
        })
        if (!response.ok) throw new Error(`kubelet answers with status ${response.status}`)
        pods = ((await response.json()) as { items?: KubeObject[] }).items ?? []
      } catch (error) {
        log.debug('static pods could not be asked for', { error })
        for (const { metadata } of status.list()) status.keep(metadata.id)
        return
      }
      for (const pod of pods) {
        const source = pod.metadata.annotations?.['kubernetes.io/config.source']
        if (source && source !== 'api') status.put(`${pod.metadata.namespace}/${pod.metadata.name}`, pod.status ?? {})
      }
    },
  })
}
