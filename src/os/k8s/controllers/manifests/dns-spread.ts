import { type Controller, defineController, weak } from '../../../../cosi/controller.ts'
import { core, type KubeClient, kubeClient, pathOf } from '../../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import type { Machine } from '../../../area.ts'
import { Service } from '../../../runtime/resources/service.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { crowdedDns, isPlacing, type Move } from '../../manifests/dns-spread.ts'
import { systemNamespace } from '../../manifests/objects.ts'
import { Manifest, ManifestStatus } from '../../resources/manifest.ts'

/** The lock held while one of the control plane nodes moves a pod. */
const mutex = 'ichor:v1:dnsSpreadMutex'
/** Milliseconds between two looks at the pods. */
const interval = 10_000
/** Milliseconds for the election and the eviction. */
const limit = 60_000

type Watching = Pick<Machine, 'clock' | 'elect'>

/**
 * Moves one of the pods of cluster DNS when all of them are on one node although another could take one: usually they are placed
 * before the second node joins, and would all go down with the first.
 */
export const spreadDns = (machine: Watching): Controller =>
  defineController({
    name: 'k8s.DNSSpreadController',
    inputs: {
      secrets: weak(KubernetesSecret, { id: 'k8s-certs' }),
      manifests: weak(Manifest, { id: '11-core-dns' }),
      // There once the API server has answered: before, there is nothing to look at.
      applied: weak(ManifestStatus),
      services: weak(Service, { id: 'etcd' }),
    },
    outputs: {},
    reconcile({ secrets, manifests, applied, services, log, background }) {
      const kubeconfig = secrets.get('k8s-certs')?.spec.localhostAdminKubeconfig
      if (!kubeconfig || !manifests.get('11-core-dns') || applied.list().length === 0 || !services.get('etcd')?.spec.healthy) return
      // Credentials of a replaced authority would fail forever.
      background({ name: 'spread DNS', of: Bun.hash(kubeconfig).toString(36) }, async (signal, _wake, report) => {
        const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
        const tried = new Set<string>()
        try {
          for (; !signal.aborted; await machine.clock.sleep(interval, signal)) {
            const moved = await moveOne(machine, client, tried, signal)
            report()
            if (moved) log.info('moving a pod of cluster DNS to another node', { pod: moved.pod.metadata.name, nodes: moved.to.join(' ') })
          }
        } finally {
          client.close()
        }
      })
    },
  })

/** Evicts a pod, once for each set of nodes that could take it: a scheduler that prefers the old node is not contradicted forever. */
export async function moveOne(
  { clock, elect }: Watching,
  client: KubeClient,
  tried: Set<string>,
  signal: AbortSignal,
): Promise<Move | undefined> {
  const look = async () => {
    const { items: pods } = await client.list(core.pod, { namespace: systemNamespace, labelSelector: 'k8s-app=kube-dns' }, { signal })
    const { items: nodes } = await client.list(core.node, {}, { signal })
    const move = crowdedDns(nodes, pods, clock.now())
    if (!move) return undefined
    const { items: schedulers } = await client.list(
      core.pod,
      { namespace: systemNamespace, labelSelector: 'component=kube-scheduler' },
      { signal },
    )
    return !schedulers.some(isPlacing) || tried.has(move.to.join(' ')) ? undefined : move
  }
  if (!(await look())) return undefined
  let moved: Move | undefined
  const act = async () => {
    // Another control plane may have been faster.
    moved = await look()
    if (!moved) return
    tried.add(moved.to.join(' '))
    const { name, namespace } = moved.pod.metadata
    const body = JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } })
    await client.request('POST', `${pathOf(core.pod, namespace, name)}/eviction`, { body, signal })
  }
  await elect(mutex, act, AbortSignal.any([signal, AbortSignal.timeout(limit)]))
  return moved
}
