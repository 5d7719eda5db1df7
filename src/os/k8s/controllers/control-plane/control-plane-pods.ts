import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import type { Resource } from '../../../../cosi/resource.ts'
import { kubeClient } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import { pause } from '../../../../timing/pause.ts'
import { Service } from '../../../runtime/resources/service.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { apiReady } from '../../apply-manifests.ts'
import { settingsAnnotation } from '../../component/settings.ts'
import { identified, podUid } from '../../control-plane/static-pod-identity.ts'
import { apiServerPod, controllerManagerPod, schedulerPod } from '../../control-plane/static-pods.ts'
import { APIServerConfig } from '../../resources/api-server-config.ts'
import { ConfigStatus } from '../../resources/config-status.ts'
import { ControllerManagerConfig } from '../../resources/controller-manager-config.ts'
import { NodeStatus } from '../../resources/node.ts'
import { Nodename } from '../../resources/nodename.ts'
import { SchedulerConfig } from '../../resources/scheduler-config.ts'
import { SecretStatus } from '../../resources/secret-status.ts'
import { StaticPod } from '../../resources/static-pod.ts'

/** How long an API server that must stop continues to answer, in milliseconds. */
const replacement = 5000

/**
 * How long a pod is hidden from an API server whose node is about to become ready, in milliseconds: the cluster resets the
 * readiness of pods on a node that is not ready, and the kubelet corrects that only every ten seconds.
 */
const nearlyReady = 5000

/** The control plane's pods, once their files are on disk and etcd is healthy. */
export function renderControlPlanePods(): Controller {
  let answered = ''
  let since: number | undefined
  return defineController({
    name: 'k8s.ControlPlaneStaticPodController',
    effects: 'none',
    inputs: {
      apiServer: weak(APIServerConfig, { id: 'kube-apiserver' }),
      controllerManager: weak(ControllerManagerConfig, { id: 'kube-controller-manager' }),
      scheduler: weak(SchedulerConfig, { id: 'kube-scheduler' }),
      secrets: weak(SecretStatus, { id: 'static-pods' }),
      configs: weak(ConfigStatus, { id: 'static-pods' }),
      services: weak(Service, { id: 'etcd' }),
      kubeconfigs: weak(KubernetesSecret, { id: 'k8s-certs' }),
      nodename: weak(Nodename, { id: 'nodename' }),
      node: weak(NodeStatus),
    },
    outputs: { pods: shared(StaticPod) },
    reconcile(round) {
      const { apiServer, controllerManager, scheduler, secrets, configs, services, kubeconfigs, nodename, node, pods, background } = round
      const [api, manager, chooser] = [
        apiServer.get('kube-apiserver'),
        controllerManager.get('kube-controller-manager'),
        scheduler.get('kube-scheduler'),
      ]
      const secretsReady = secrets.get('static-pods')?.spec
      const configsReady = configs.get('static-pods')?.spec
      if (!api || !manager || !chooser) return
      const name = nodename.get('nodename')?.spec.nodename
      if (!name || !secretsReady?.ready || !configsReady?.ready || !services.get('etcd')?.spec.healthy) {
        // A running control plane keeps running: etcd may be unavailable for a moment only.
        for (const pod of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']) pods.keep(pod)
        return
      }
      const status = node.get(name)?.spec
      const versions = (metadata: { version: number }) => ({ secrets: secretsReady.version, config: String(metadata.version) })
      const server = apiServerPod(api.spec, { ...versions(api.metadata), configFiles: configsReady.version })
      const uid = podUid(server, name)
      if (status) since ??= round.clock.elapsed()
      const left = status && !status.nodeReady && since !== undefined ? since + nearlyReady - round.clock.elapsed() : 0
      if (left > 0) round.wakeIn(left)
      const known = !status || left > 0 ? 'starting' : status.nodeReady ? 'ready' : 'registered'
      // Changes once more when the API server answers: requests that it refused while it was starting are then retried.
      const answers = known === 'starting' ? '' : answered === uid ? ', the API server answers' : answered ? ', with a new API server' : ''
      const identity = ({ metadata: { annotations } }: Resource) => ({
        node: name,
        progress: `${known}${answers}`,
        settings: annotations[settingsAnnotation] ?? '',
      })
      pods.put('kube-apiserver', identified(server, identity(api)))
      const kubeconfig = kubeconfigs.get('k8s-certs')?.spec.localhostAdminKubeconfig
      if (answered !== uid && kubeconfig)
        background({ name: 'await API server', of: uid }, async (signal, wake) => {
          await untilApiReady(kubeconfig, { replaces: answered !== '' }, signal)
          answered = uid
          wake()
        })
      // The others exit at once without an API server, and their restarts would be delayed more and more.
      if (!answered) {
        for (const pod of ['kube-controller-manager', 'kube-scheduler']) pods.keep(pod)
        return
      }
      if (manager.spec.enabled)
        pods.put('kube-controller-manager', identified(controllerManagerPod(manager.spec, versions(manager.metadata)), identity(manager)))
      if (chooser.spec.enabled)
        pods.put('kube-scheduler', identified(schedulerPod(chooser.spec, versions(chooser.metadata)), identity(chooser)))
    },
  })
}

/** Waits for the API server. One that is being replaced answers a little longer, and must not be taken for its successor. */
async function untilApiReady(kubeconfig: string, { replaces }: { replaces: boolean }, signal: AbortSignal): Promise<void> {
  const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
  try {
    if (replaces) await pause(replacement, signal)
    signal.throwIfAborted()
    await apiReady(client, signal)
  } finally {
    client.close()
  }
}
