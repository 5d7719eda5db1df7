import { type Controller, defineController, weak } from '../../../../cosi/controller.ts'
import { kubeClient } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import { DiscoveryConfig } from '../../../cluster/resources/discovery-config.ts'
import { Member } from '../../../cluster/resources/member.ts'
import { serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { CertSAN } from '../../../secrets/resources/cert-san.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { approveRequests } from '../../kubelet/approve-requests.ts'
import { type ServingRecords, servingRequestProblem } from '../../kubelet/serving-request.ts'
import { dnsDomain, isControlPlane, kubernetesConfigOf, requestsServingCertificates } from '../../machine-config.ts'

const signer = 'kubernetes.io/kubelet-serving'

/**
 * Approves kubelets' serving certificates where the configuration has kubelets request them: for names and addresses that the
 * cluster's records attribute to the requesting node.
 */
export const approveServingCertificates = (): Controller => {
  let latest: Omit<ServingRecords, 'nodes'> | undefined
  return defineController({
    name: 'k8s.ServingCertificateController',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      secrets: weak(KubernetesSecret, { id: 'k8s-certs' }),
      sans: weak(CertSAN, { id: 'k8s' }),
      discovery: weak(DiscoveryConfig, { id: 'cluster' }),
      members: weak(Member),
    },
    outputs: {},
    reconcile({ config, secrets, sans, discovery, members, log, background }) {
      const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
      const kubeconfig = secrets.get('k8s-certs')?.spec.localhostAdminKubeconfig
      const apiServer = sans.get('k8s')?.spec
      if (!requestsServingCertificates(machineConfig) || !isControlPlane(machineConfig) || !kubeconfig || !apiServer) return
      const records = {
        apiServer: [...apiServer.dnsNames, ...apiServer.ips],
        serviceSubnets: serviceSubnets(machineConfig?.cluster),
        dnsDomain: dnsDomain(machineConfig?.cluster),
        members: discovery.get('cluster')?.spec.discoveryEnabled
          ? members.list().map(({ metadata, spec }) => ({ nodename: metadata.id, hostname: spec.hostname, addresses: spec.addresses }))
          : undefined,
      }
      latest = records
      // Credentials of a replaced authority would fail forever.
      background({ name: 'approve', of: Bun.hash(kubeconfig).toString(36) }, async (signal) => {
        const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
        const approval = {
          signer,
          message: 'names and addresses are those of the node',
          problem: (request: Parameters<typeof servingRequestProblem>[0], nodes: ServingRecords['nodes']) =>
            servingRequestProblem(request, { ...(latest ?? records), nodes }),
          approved: (request: { metadata: { name?: string } }) =>
            log.info('kubelet serving certificate approved', { request: request.metadata.name }),
          held: (request: { metadata: { name?: string } }, reason: string) =>
            log.warn('kubelet serving certificate not approved', { request: request.metadata.name, reason }),
        }
        await approveRequests(client, approval, signal).finally(() => client.close())
      })
    },
  })
}
