import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import { core, type KubeClient, kubeClient } from '../../../../kube/client.ts'
import { follow } from '../../../../kube/follow.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import type { KubeObject } from '../../../../kube/object.ts'
import { MachineType } from '../../../config/resources/machine-type.ts'
import { contacts } from '../../../contacts.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { type KubeletFileSystem, kubeletAccess } from '../../kubelet/files.ts'
import { Endpoint } from '../../resources/endpoint.ts'
import { KubeletKubeconfig } from '../../resources/kubelet.ts'

const retryDelay = 2000

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

function watchApiServers(
  client: KubeClient,
  changed: (addresses: string[]) => void,
  signal: AbortSignal,
  report: (error?: unknown) => void,
): Promise<void> {
  const slices = new Map<string | undefined, KubeObject>()
  const publish = () => changed([...new Set([...slices.values()].flatMap(addressesOf))].sort())
  const followed = {
    listed(items: readonly KubeObject[]) {
      slices.clear()
      for (const slice of items) slices.set(slice.metadata.name, slice)
      publish()
      report()
    },
    changed(slice: KubeObject, deleted: boolean) {
      if (deleted) slices.delete(slice.metadata.name)
      else slices.set(slice.metadata.name, slice)
      publish()
    },
    failed: report,
  }
  const query = { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' }
  return follow(client, core.endpointSlice, query, followed, signal, { first: retryDelay })
}

function addressesOf(slice: KubeObject): string[] {
  return ((slice.endpoints ?? []) as { addresses?: string[] }[]).flatMap(({ addresses = [] }) => addresses)
}
