import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { kubeClient } from '../../../kube/client.ts'
import { KubeError } from '../../../kube/errors.ts'
import type { Machine } from '../../area.ts'
import { KubeletSecret } from '../../secrets/resources/kubelet-secret.ts'
import { KubernetesRootSecret } from '../../secrets/resources/kubernetes-root-secret.ts'
import { bootstrapAccess, hasClientCertificate, issueClientCertificate, type KubeletAccess, writeKubeletFiles } from '../kubelet-files.ts'
import { KubeletLifecycle } from '../resources/kubelet-lifecycle.ts'
import { KubeletSpec } from '../resources/kubelet-spec.ts'
import { StaticPod } from '../resources/static-pod.ts'

/** How long a node that is to join waits for the API to take its token before the kubelet starts without. */
const joinPatience = 120_000
const retryDelay = 250

/** What is needed of the machine. */
type Parts = Pick<Machine, 'store' | 'supervisor' | 'service'> & { kernel: Pick<Machine['kernel'], 'files'> }

/** Starts the kubelet once it is known how, and anew when that changes. */
export function startKubelet({ kernel: { files }, store, supervisor, service }: Parts): Controller {
  let started = ''
  let mayJoin = false
  return defineController({
    name: 'k8s.KubeletServiceController',
    inputs: {
      specs: weak(KubeletSpec, { id: 'kubelet' }),
      secrets: weak(KubeletSecret, { id: 'kubelet' }),
      roots: weak(KubernetesRootSecret, { id: 'k8s' }),
      pods: weak(StaticPod),
    },
    outputs: {},
    async reconcile({ specs, secrets, roots, pods, log, now, background }) {
      const spec = specs.get('kubelet')?.spec
      const secret = secrets.get('kubelet')?.spec
      const access = secret && bootstrapAccess(secret)
      if (!spec || !access) return
      const nodename = spec.expectedNodename
      const root = roots.get('k8s')?.spec
      const registers = spec.args?.some((argument) => argument.startsWith('--kubeconfig=')) ?? false
      await writeKubeletFiles(files, spec, access)
      if (registers && !(await hasClientCertificate(files, nodename, now()))) {
        if (root?.issuingCA?.key && nodename) await issueClientCertificate(files, root, nodename, now())
        // A kubelet that asks too early waits long before it asks again; pods of the configuration do not wait at all.
        else if (!mayJoin && pods.list().length === 0) {
          background('join', async (signal, wake) => {
            await untilTokenWorks(access, signal)
            mayJoin = true
            wake()
          })
          return
        }
      }
      const wanted = Bun.hash(JSON.stringify([spec, access])).toString(36)
      if (started === wanted) return
      if (started) {
        log.info('starting the kubelet anew, what it is started with has changed')
        await supervisor.restart('kubelet')
      } else {
        supervisor.load(service('kubelet'))
        supervisor.start('kubelet')
        store.put(KubeletLifecycle, 'kubelet', {})
      }
      started = wanted
    },
  })
}

/** Resolves when the API server knows the bootstrap token, or when waiting any longer is pointless. */
async function untilTokenWorks({ server, ca, token }: KubeletAccess, signal: AbortSignal): Promise<void> {
  const client = kubeClient({ server, ca, token })
  const end = Date.now() + joinPatience
  try {
    while (Date.now() < end) {
      try {
        await client.request('GET', '/version', { signal, timeout: 10_000 })
        return
      } catch (error) {
        if (signal.aborted) throw signal.reason
        // Known, but not allowed to look: good enough to ask for a certificate.
        if (error instanceof KubeError && error.status === 403) return
      }
      await Bun.sleep(retryDelay)
    }
  } finally {
    client.close()
  }
}
