import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { core, type KubeClient, kubeClient, pathOf } from '../../../kube/client.ts'
import { KubeError } from '../../../kube/errors.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { KubernetesSecret } from '../../secrets/resources/kubernetes-secret.ts'
import { extraArgsOf, isControlPlane, kubernetesConfigOf } from '../machine-config.ts'
import { servingRequestProblem } from '../serving-request.ts'

const signer = 'kubernetes.io/kubelet-serving'
const retryDelay = 5000

/**
 * Approves kubelets' serving certificates where the configuration has kubelets ask for them: a request is granted for
 * just the names and addresses under which the cluster knows the node that asks.
 */
export const approveServingCertificates = (): Controller =>
  defineController({
    name: 'k8s.ServingCertificateController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), secrets: weak(KubernetesSecret, { id: 'k8s-certs' }) },
    outputs: {},
    reconcile({ config, secrets, log, background }) {
      const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
      const kubeconfig = secrets.get('k8s-certs')?.spec.localhostAdminKubeconfig
      const asked = extraArgsOf(machineConfig?.machine?.kubelet?.extraArgs)['rotate-server-certificates']?.values.at(-1) === 'true'
      if (!asked || !isControlPlane(machineConfig) || !kubeconfig) return
      background('approve', async (signal) => {
        const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
        const judge = async (request: KubeObject) => {
          const problem = await judged(client, request, signal)
          if (problem) log.warn('kubelet serving certificate is not approved', { request: request.metadata.name, reason: problem })
          else if (problem === '') log.info('kubelet serving certificate approved', { request: request.metadata.name })
        }
        await watchRequests(client, judge, signal).finally(() => client.close())
      })
    },
  })

async function watchRequests(client: KubeClient, judge: (request: KubeObject) => Promise<void>, signal: AbortSignal): Promise<never> {
  const query = { fieldSelector: `spec.signerName=${signer}` }
  for (;;) {
    try {
      const { items, resourceVersion } = await client.list(core.certificateSigningRequest, query, { signal })
      for (const item of items) await judge(item)
      for await (const { type, object } of client.watch(core.certificateSigningRequest, { ...query, resourceVersion }, { signal }))
        if (type === 'ADDED') await judge(object)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof KubeError)) throw error
      await Bun.sleep(retryDelay)
    }
  }
}

/** Undefined when there is nothing to decide, '' when it was approved, else why not. */
async function judged(client: KubeClient, request: KubeObject, signal: AbortSignal): Promise<string | undefined> {
  const status = (request.status ?? {}) as { conditions?: unknown[] }
  if ((status.conditions ?? []).length > 0) return undefined
  const { username = '' } = request.spec as { username?: string }
  const node = await client.get(core.node, username.replace(/^system:node:/, ''), undefined, { signal }).catch(() => undefined)
  const problem = servingRequestProblem(request, node)
  if (problem) return problem
  const condition = { type: 'Approved', status: 'True', reason: 'NodeIsKnown', message: 'names and addresses are those of the node' }
  const body = JSON.stringify({ ...request, status: { ...status, conditions: [condition] } })
  const path = `${pathOf(core.certificateSigningRequest, undefined, request.metadata.name)}/approval`
  await client.request('PUT', path, { body, signal })
  return ''
}
