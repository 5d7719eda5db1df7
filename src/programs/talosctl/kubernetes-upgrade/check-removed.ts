/** What of the running cluster is gone in the version it is upgraded to. */

import type { KubeClient } from '../../../kube/client.ts'
import { isNotFound } from '../../../kube/errors.ts'
import type { Cluster } from '../cluster.ts'
import { failedWith, UsageError } from '../failure.ts'
import { resourceOf } from '../machine/machine.ts'
import { type Row, table } from '../output/table.ts'
import type { UpgradedNode } from './nodes.ts'
import type { RemovedItems, RemovedResource } from './removed-items.ts'

/** The arguments with which a component runs on a node. */
export interface ComponentArguments {
  readonly node: string
  readonly component: string
  readonly args: readonly string[]
  /** Feature gates from elsewhere than the arguments: the configuration file of the kubelet. */
  readonly featureGates?: readonly string[]
}

/** The tables of everything that is gone; empty if nothing is used any more. */
export function removedIn(
  removed: RemovedItems,
  components: readonly ComponentArguments[],
  resources: readonly { readonly resource: RemovedResource; readonly count: number }[],
): string[] {
  const found = (title: string, used: (one: ComponentArguments) => readonly string[]) => {
    const rows = components.flatMap((one) => used(one).map((item): Row => [one.node, one.component, item]))
    return rows.length > 0 ? [table([['NODE', 'COMPONENT', title], ...rows])] : []
  }
  const listed = (args: readonly string[], flag: string) =>
    (args.find((arg) => arg.startsWith(`--${flag}=`))?.slice(flag.length + 3) ?? '').split(',').map((one) => one.split('=')[0] ?? '')
  const rows = resources.filter(({ count }) => count > 0).map(({ resource, count }): Row => [nameOf(resource), count])
  return [
    ...found('REMOVED ADMISSION PLUGIN', ({ component, args }) =>
      component === 'kube-apiserver'
        ? listed(args, 'enable-admission-plugins').filter((one) => removed.admissionPlugins?.includes(one))
        : [],
    ),
    ...found('REMOVED FEATURE GATE', ({ args, featureGates = [] }) =>
      [...new Set([...listed(args, 'feature-gates'), ...featureGates])].filter((one) => removed.featureGates.includes(one)),
    ),
    ...found('REMOVED FLAG', ({ component, args }) => {
      const flags = args.map((arg) => arg.replace(/^--/, '').split('=')[0] ?? '')
      return (removed.flags?.[component] ?? []).filter((flag) => flags.includes(flag))
    }),
    ...(rows.length > 0 ? [table([['REMOVED RESOURCE', 'COUNT'], ...rows])] : []),
  ]
}

/** `plural.version.group`. */
const nameOf = ({ plural, apiVersion }: RemovedResource): string => [plural, ...apiVersion.split('/').toReversed()].join('.')

/** Throws UsageError with the tables if the cluster uses what is gone. */
export async function checkRemoved(
  cluster: Cluster,
  kubernetes: KubeClient,
  nodes: readonly UpgradedNode[],
  removed: RemovedItems | undefined,
): Promise<void> {
  if (!removed) return
  const components = (await Promise.all(nodes.map((node) => argumentsOn(cluster, node)))).flat()
  const resources = await Promise.all(
    (removed.resources ?? []).map(async (resource) => ({ resource, count: await countOf(kubernetes, resource) })),
  )
  const tables = removedIn(removed, components, resources)
  if (tables.length > 0)
    throw new UsageError(`remove what the new version no longer has, then upgrade:\n\n${tables.join('\n').replace(/\n*$/, '')}`)
}

async function argumentsOn(cluster: Cluster, { address, name, controlPlane }: UpgradedNode): Promise<ComponentArguments[]> {
  const read = async <T>(type: string, id: string): Promise<T | undefined> => {
    try {
      return await resourceOf<T>(cluster, address, 'k8s', type, id)
    } catch (error) {
      if (failedWith(error, 'NotFound')) return undefined
      throw error
    }
  }
  const found: ComponentArguments[] = []
  for (const component of controlPlane ? ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] : []) {
    const pod = await read<{ spec?: { containers?: { command?: string[] }[] } }>('StaticPods.kubernetes.talos.dev', component)
    if (pod) found.push({ node: name, component, args: pod.spec?.containers?.[0]?.command ?? [] })
  }
  const kubelet = await read<{ args?: string[]; config?: { featureGates?: Record<string, boolean> } }>(
    'KubeletSpecs.kubernetes.talos.dev',
    'kubelet',
  )
  const featureGates = Object.keys(kubelet?.config?.featureGates ?? {})
  if (kubelet) found.push({ node: name, component: 'kubelet', args: kubelet.args ?? [], featureGates })
  return found
}

async function countOf(kubernetes: KubeClient, { plural, apiVersion, kind }: RemovedResource): Promise<number> {
  try {
    return (await kubernetes.list({ apiVersion, kind, plural, namespaced: false })).items.length
  } catch (error) {
    // A version that the server does not serve has no objects.
    if (isNotFound(error)) return 0
    throw error
  }
}
