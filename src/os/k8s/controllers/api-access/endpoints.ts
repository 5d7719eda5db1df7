import { type Controller, defineController, weak } from '../../../../cosi/controller.ts'
import { kubeClient } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import type { Machine } from '../../../area.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { keepEndpoints } from '../../api-access/endpoints.ts'
import { Endpoint } from '../../resources/endpoint.ts'
import { KubernetesAccessConfig } from '../../resources/kubernetes-access-config.ts'

/** Leads the service of the machine API to the control plane nodes. Their addresses are those of the API servers. */
export const keepApiEndpoints = ({ clock }: Pick<Machine, 'clock'>): Controller =>
  defineController({
    name: 'kubeaccess.EndpointController',
    inputs: {
      access: weak(KubernetesAccessConfig, { id: 'config' }),
      secrets: weak(KubernetesSecret, { id: 'k8s-certs' }),
      endpoints: weak(Endpoint, { id: 'kube-apiserver' }),
    },
    outputs: {},
    reconcile({ access, secrets, endpoints, background }) {
      const kubeconfig = secrets.get('k8s-certs')?.spec.localhostAdminKubeconfig
      const { addresses = [] } = endpoints.get('kube-apiserver')?.spec ?? {}
      if (!access.get('config')?.spec.enabled || !kubeconfig || addresses.length === 0) return
      const of = Bun.hash(JSON.stringify([kubeconfig, addresses])).toString(36)
      background({ name: 'keep endpoints of the machine API', of }, async (signal, _wake, report) => {
        const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
        await keepEndpoints(client, addresses, { clock, report }, signal).finally(() => client.close())
      })
    },
  })
