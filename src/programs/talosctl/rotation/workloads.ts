/**
 * Pods that call the API of Kubernetes. Most programs read the authorities they trust once, when they start: between the rounds
 * they have to start again, or they refuse the API server from the moment it has a certificate of the new authority.
 */
import { createHash } from 'node:crypto'
import { core, type KubeClient, type KubeKind } from '../../../kube/client.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { rolloutLag } from '../../../kube/rollout.ts'

/** Which workloads are restarted: those of the system, all, or none. */
export type RestartScope = 'system' | 'all' | 'none'
export const restartScopes: readonly RestartScope[] = ['system', 'all', 'none']

/** What the system itself runs in the cluster; each calls the API. */
const system: readonly string[] = ['coredns', 'kube-flannel', 'kube-proxy']

/** The annotation of a pod template with the authority or key its pods were restarted for. */
const annotation = 'ichor.dev/restarted-for'

const kinds: readonly KubeKind[] = [
  core.deployment,
  core.daemonSet,
  { apiVersion: 'apps/v1', kind: 'StatefulSet', plural: 'statefulsets', namespaced: true },
]

/** Starts the rolling restart of the workloads, as their own update strategies have it. One that was restarted for this already is left alone. */
export async function restartWorkloads(kubernetes: KubeClient, scope: RestartScope, reason: string): Promise<string[]> {
  const value = createHash('sha256').update(reason).digest('hex').slice(0, 16)
  const body = { spec: { template: { metadata: { annotations: { [annotation]: value } } } } }
  const restarted: string[] = []
  for (const [kind, workload] of await workloadsIn(kubernetes, scope)) {
    const { name = '', namespace } = workload.metadata
    if (templateOf(workload)?.metadata?.annotations?.[annotation] === value) continue
    await kubernetes.patch(kind, name, namespace, { type: 'application/merge-patch+json', body })
    restarted.push(`${namespace}/${name}`)
  }
  return restarted
}

/** Throws while a workload still has pods of before. */
export async function checkRolledOut(kubernetes: KubeClient, scope: RestartScope): Promise<void> {
  for (const [, workload] of await workloadsIn(kubernetes, scope)) {
    const lag = rolloutLag(workload)
    if (lag !== undefined) throw new Error(lag)
  }
}

interface Template {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> }
}

const templateOf = ({ spec }: KubeObject): Template | undefined => (spec as { template?: Template } | undefined)?.template

async function workloadsIn(kubernetes: KubeClient, scope: RestartScope): Promise<[KubeKind, KubeObject][]> {
  if (scope === 'none') return []
  const query = scope === 'system' ? { namespace: 'kube-system' } : {}
  const lists = await Promise.all(
    kinds.map(async (kind) => (await kubernetes.list(kind, query)).items.map((item): [KubeKind, KubeObject] => [kind, item])),
  )
  return lists.flat().filter(([, { metadata }]) => scope === 'all' || system.includes(metadata.name ?? ''))
}

/** A file that a pod is given in a projected volume, as its node has it. */
export interface ProjectedFile {
  readonly pod: string
  readonly node: string
  readonly path: string
}

interface ProjectedVolume {
  readonly name: string
  readonly projected?: {
    readonly sources?: readonly {
      readonly configMap?: { readonly name?: string; readonly items?: readonly { readonly key: string; readonly path: string }[] }
      readonly serviceAccountToken?: { readonly path: string }
    }[]
  }
}

/** Where the running pods have the authorities (`ca.crt`) or the tokens they are given. */
export async function projectedFiles(kubernetes: KubeClient, what: 'authorities' | 'tokens'): Promise<ProjectedFile[]> {
  const { items } = await kubernetes.list(core.pod, { fieldSelector: 'status.phase=Running' })
  return items.flatMap(({ metadata, spec }) => {
    if (metadata.deletionTimestamp !== undefined) return []
    const { nodeName = '', volumes = [] } = (spec ?? {}) as { nodeName?: string; volumes?: ProjectedVolume[] }
    return volumes.flatMap(({ name, projected }) =>
      (projected?.sources ?? [])
        .flatMap(({ configMap, serviceAccountToken }) => {
          if (what === 'tokens') return serviceAccountToken ? [serviceAccountToken.path] : []
          if (configMap?.name !== 'kube-root-ca.crt') return []
          return (configMap.items ?? [{ key: 'ca.crt', path: 'ca.crt' }]).filter(({ key }) => key === 'ca.crt').map(({ path }) => path)
        })
        .map((path) => ({
          pod: `${metadata.namespace}/${metadata.name}`,
          node: nodeName,
          path: `/var/lib/kubelet/pods/${metadata.uid}/volumes/kubernetes.io~projected/${name}/${path}`,
        })),
    )
  })
}
