/** The machines of a rotation: which there are, and the files and calls that prove what they use. */
import type { Cluster } from '../cluster.ts'
import { describe, UsageError } from '../failure.ts'
import { discoverMembers } from '../health/view.ts'

const timeout = 10_000

/** Addresses of all machines of a cluster. */
export interface Machines {
  readonly controlPlanes: readonly string[]
  readonly workers: readonly string[]
}

/** The flags that name them. */
export interface MachineFlags {
  readonly initNode?: string
  readonly controlPlaneNodes?: string[]
  readonly workerNodes?: string[]
}

/** The machines that the flags name, else the members that the cluster knows. A rotation that left one out would cut it off. */
export async function machinesOf(
  cluster: Cluster,
  { initNode, controlPlaneNodes = [], workerNodes = [] }: MachineFlags,
): Promise<Machines> {
  const named = [...(initNode ? [initNode] : []), ...controlPlaneNodes]
  if (named.length === 0 && workerNodes.length > 0) throw new UsageError('--worker-nodes needs --control-plane-nodes beside it')
  if (named.length > 0) return { controlPlanes: [...new Set(named)], workers: [...new Set(workerNodes)] }
  const { controlPlanes, workers } = await discoverMembers(cluster)
  if (controlPlanes.length === 0)
    throw new UsageError('no members are known to the cluster: name all machines with --control-plane-nodes and --worker-nodes')
  return { controlPlanes: controlPlanes.toSorted(), workers: workers.toSorted() }
}

/** All machines, in the order in which a round changes them. */
export const inOrder = ({ controlPlanes, workers }: Machines): readonly string[] => [...controlPlanes, ...workers]

/** A small file of a machine, as text. */
export async function fileOf(cluster: Cluster, node: string, path: string): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const { bytes } of cluster.stream('machine.MachineService/Read', { path }, { node, timeout })) chunks.push(bytes)
  return Buffer.concat(chunks).toString('utf8')
}

/** Restarts the kubelet of a machine; pods go on running. */
export async function restartKubelet(cluster: Cluster, node: string): Promise<void> {
  await cluster.ask('machine.MachineService/ServiceRestart', { id: 'kubelet' }, { node, timeout: 30_000 })
}

/** Calls a machine through one endpoint; both connections are new ones. */
export async function checkCallable(open: () => Cluster, node: string): Promise<void> {
  const cluster = open()
  try {
    await cluster.ask('machine.MachineService/Version', {}, { node, newConnection: true, timeout })
  } finally {
    await cluster.close()
  }
}

/** An error of several, each with what it concerns. */
export function together(errors: readonly { readonly what: string; readonly error: unknown }[]): Error {
  return new Error(errors.map(({ what, error }) => `${what}: ${describe(error).trim()}`).join('; '))
}
