import { type Controller, defineController, weak } from '../../../../cosi/controller.ts'
import { kubeClient } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import type { Machine } from '../../../area.ts'
import { Service } from '../../../runtime/resources/service.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { OSRootSecret } from '../../../secrets/resources/os-root-secret.ts'
import { serveAccounts } from '../../api-access/serve.ts'
import { KubernetesAccessConfig } from '../../resources/kubernetes-access-config.ts'

/** The lock held by the control plane node that serves. */
const mutex = 'talos:v1:serviceAccountCRDController'

/** Gives pods credentials for the machine API, on one of the control plane nodes at a time. */
export const serveServiceAccounts = ({ elect, clock }: Pick<Machine, 'elect' | 'clock'>): Controller =>
  defineController({
    name: 'kubeaccess.CRDController',
    inputs: {
      access: weak(KubernetesAccessConfig, { id: 'config' }),
      secrets: weak(KubernetesSecret, { id: 'k8s-certs' }),
      roots: weak(OSRootSecret, { id: 'os' }),
      services: weak(Service, { id: 'etcd' }),
    },
    outputs: {},
    reconcile({ access, secrets, roots, services, log, background }) {
      const config = access.get('config')?.spec
      const kubeconfig = secrets.get('k8s-certs')?.spec.localhostAdminKubeconfig
      const authority = roots.get('os')?.spec.issuingCA
      if (!config?.enabled || !kubeconfig || !authority?.key || !services.get('etcd')?.spec.healthy) return
      const policy = { authority, roles: config.allowedAPIRoles, namespaces: config.allowedKubernetesNamespaces }
      // It starts again when the configuration, the authority or the credentials change.
      const of = Bun.hash(JSON.stringify([kubeconfig, policy])).toString(36)
      background({ name: 'serve service accounts', of }, async (signal, _wake, report) => {
        const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
        const serving = { client, policy, clock, log, report }
        const act = async (holding: AbortSignal) => {
          await serveAccounts(serving, holding)
          // The lock was lost: the task fails, so that this node stands for election again.
          holding.throwIfAborted()
        }
        await elect(mutex, act, signal).finally(() => client.close())
      })
    },
  })
