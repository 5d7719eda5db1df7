import { type Controller, defineController, exclusive, shared, weak } from '../../../../cosi/controller.ts'
import type { KubeObject } from '../../../../kube/object.ts'
import { isReady, podStatus } from '../../../../kube/pod.ts'
import { Service } from '../../../runtime/resources/service.ts'
import { KubernetesDynamicCert } from '../../../secrets/resources/kubernetes-dynamic-cert.ts'
import { KubernetesRootSecret } from '../../../secrets/resources/kubernetes-root-secret.ts'
import { podRun, type Run } from '../../component/pod-run.ts'
import { settingsAnnotation } from '../../component/settings.ts'
import { pemOf } from '../../rendered-files.ts'
import { ComponentStatus } from '../../resources/component.ts'
import { Nodename } from '../../resources/nodename.ts'
import { StaticPod, StaticPodStatus } from '../../resources/static-pod.ts'

/** Poll intervals in milliseconds: while a pod is not ready, and when all are. */
const searchPeriod = 1000
const calmPeriod = 15_000
const limit = 5000

/** The status of the static pods, from this node's kubelet, which knows it even without an API server. */
export function observeStaticPods(): Controller {
  return defineController({
    name: 'k8s.KubeletStaticPodController',
    inputs: {
      nodename: weak(Nodename, { id: 'nodename' }),
      services: weak(Service, { id: 'kubelet' }),
      certificates: weak(KubernetesDynamicCert, { id: 'k8s-dynamic-certs' }),
      roots: weak(KubernetesRootSecret, { id: 'k8s' }),
      desired: weak(StaticPod),
    },
    outputs: { status: exclusive(StaticPodStatus), components: shared(ComponentStatus) },
    async reconcile({ nodename, services, certificates, roots, desired, status, components, signal, wakeIn, log }) {
      const name = nodename.get('nodename')?.spec.nodename
      const client = certificates.get('k8s-dynamic-certs')?.spec.apiServerKubeletClient
      if (!name || !client || !roots.get('k8s') || !services.get('kubelet')?.spec.healthy) return
      let pods: KubeObject[]
      try {
        const response = await fetch('https://127.0.0.1:10250/pods/?timeout=5s', {
          // The kubelet's own certificate is self-signed; on loopback no other server can answer.
          tls: { cert: pemOf(client.crt), key: pemOf(client.key), rejectUnauthorized: false },
          signal: AbortSignal.any([signal, AbortSignal.timeout(limit)]),
        })
        if (!response.ok) throw new Error(`kubelet answers with status ${response.status}`)
        pods = ((await response.json()) as { items?: KubeObject[] }).items ?? []
      } catch (error) {
        log.debug('read static pods from the kubelet failed', { error })
        for (const { metadata } of status.list()) status.keep(metadata.id)
        for (const { metadata } of components.list()) components.keep(metadata.id)
        wakeIn(searchPeriod)
        return
      }
      const own = pods.filter(({ metadata }) => {
        const source = metadata.annotations?.['kubernetes.io/config.source']
        return source !== undefined && source !== 'api'
      })
      for (const pod of own) {
        status.put(`${pod.metadata.namespace}/${pod.metadata.name}`, pod.status ?? {})
        const component = pod.metadata.labels?.component
        const settings = pod.metadata.annotations?.[settingsAnnotation]
        if (component !== undefined && settings) components.put(component, { settings, ...runOf(pod) })
      }
      wakeIn(
        pollPeriod(
          own.map(({ status }) => status),
          desired.list().length,
        ),
      )
    },
  })
}

/** Milliseconds until the next poll: short while a desired pod is not with the kubelet yet, or one is not ready. */
export function pollPeriod(statuses: readonly unknown[], desired: number): number {
  return statuses.length >= Math.max(1, desired) && statuses.every(isReady) ? calmPeriod : searchPeriod
}

function runOf(pod: KubeObject): Run {
  const { ready, failures, error } = podRun(podStatus(pod))
  return { ready, failures, error }
}
