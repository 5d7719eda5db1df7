import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import { core, type KubeClient, kubeClient } from '../../../../kube/client.ts'
import { KubeError } from '../../../../kube/errors.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import type { KubeObject } from '../../../../kube/object.ts'
import { pause } from '../../../../timing/pause.ts'
import { MachineType } from '../../../config/resources/machine-type.ts'
import { contacts } from '../../../contacts.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { type KubeletFileSystem, kubeletAccess } from '../../kubelet/files.ts'
import { Endpoint } from '../../resources/endpoint.ts'
import { KubeletKubeconfig } from '../../resources/kubelet.ts'

const retryDelay = 2000
const longestDelay = 30_000

/** The addresses of the API servers, from the Kubernetes API. */
export function observeEndpoints({ files }: { files: Pick<KubeletFileSystem, 'readTextIfThere'> }): Controller {
  let addresses: string[] = []
  return defineController({
    name: 'k8s.EndpointController',
    contacts: contacts.controlPlane,
    inputs: {
      machineType: weak(MachineType, { id: 'machine-type' }),
      kubelet: weak(KubeletKubeconfig, { id: 'kubelet' }),
      secrets: weak(KubernetesSecret, { id: 'k8s-certs' }),
    },
    outputs: { endpoints: shared(Endpoint) },
    reconcile({ machineType, kubelet, secrets, endpoints, background }) {
      const type = machineType.get('machine-type')?.spec
      const admin = secrets.get('k8s-certs')?.spec.localhostAdminKubeconfig
      const access = type === 'worker' ? kubeletAccess(files) : admin && accessOf(parseKubeconfig(admin))
      const version = type === 'worker' ? kubelet.get('kubelet')?.spec.hash : Bun.hash(admin ?? '').toString(36)
      if (!type || !access || !version) {
        addresses = []
        return
      }
      background({ name: 'watch API servers', of: version }, async (signal, wake, report) => {
        const client = kubeClient(access)
        const changed = (found: string[]) => {
          addresses = found
          wake()
        }
        await watchApiServers(client, changed, signal, report).finally(() => client.close())
      })
      if (addresses.length > 0) endpoints.put('kube-apiserver', { addresses, hosts: [] })
    },
  })
}

async function watchApiServers(
  client: KubeClient,
  changed: (addresses: string[]) => void,
  signal: AbortSignal,
  report: (error?: unknown) => void,
): Promise<never> {
  const query = { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' }
  let delay = retryDelay
  for (;;) {
    try {
      const { items, resourceVersion } = await client.list(core.endpointSlice, query, { signal })
      const slices = new Map(items.map((slice) => [slice.metadata.name, slice]))
      const publish = () => changed([...new Set([...slices.values()].flatMap(addressesOf))].sort())
      publish()
      report()
      delay = retryDelay
      for await (const { type, object } of client.watch(core.endpointSlice, { ...query, resourceVersion }, { signal })) {
        if (type === 'BOOKMARK') continue
        if (type === 'DELETED') slices.delete(object.metadata.name)
        else slices.set(object.metadata.name, object)
        publish()
      }
      await pause(retryDelay, signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof KubeError)) throw error
      report(error)
      await pause(delay, signal)
      delay = Math.min(longestDelay, delay * 2)
    }
  }
}

function addressesOf(slice: KubeObject): string[] {
  return ((slice.endpoints ?? []) as { addresses?: string[] }[]).flatMap(({ addresses = [] }) => addresses)
}
