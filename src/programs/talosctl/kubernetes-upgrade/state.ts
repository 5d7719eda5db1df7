/**
 * What an upgrade has to remember to lead back: the images that every component of every node had before it. A file in the folder
 * of the client, written before the first machine is changed; it stays until the next upgrade begins or the rollback is over.
 */
import { join } from 'node:path'
import * as v from 'valibot'
import { clientFolder, readStateFile, removeStateFile, writeStateFile } from '../state-file.ts'
import { type ComponentName, componentNames } from './components.ts'

const image = v.object({
  /** What the machine configuration named; absent where it named none. */
  configured: v.optional(v.string()),
  /** What the component ran with. */
  running: v.string(),
})

const schema = v.object({
  /** `cluster.id` of the cluster. */
  cluster: v.string(),
  from: v.string(),
  to: v.string(),
  /** Whether every step was done. */
  done: v.boolean(),
  /** Whether the manifests may have been changed. */
  manifests: v.boolean(),
  nodes: v.array(
    v.object({
      address: v.string(),
      name: v.string(),
      controlPlane: v.boolean(),
      images: v.partial(v.object(Object.fromEntries(componentNames.map((name) => [name, image])) as Record<ComponentName, typeof image>)),
    }),
  ),
})

/** The state of the last upgrade of one cluster. */
export type UpgradeState = v.InferOutput<typeof schema>

/** A node as it was before. */
export type RecordedNode = UpgradeState['nodes'][number]

/** The image of a component before. */
export type RecordedImage = v.InferOutput<typeof image>

/** Where the state of a cluster is kept. */
export function statePath(env: Readonly<Record<string, string | undefined>>, cluster: string): string {
  return join(clientFolder(env), 'kubernetes-upgrades', `${encodeURIComponent(cluster)}.json`)
}

/** Reads the state of the last upgrade from a file; undefined if there was none. */
export function readState(path: string): Promise<UpgradeState | undefined> {
  return readStateFile(path, schema, 'the state of a Kubernetes upgrade: move it away to begin without it')
}

/** Writes the state. */
export function writeState(path: string, state: UpgradeState): Promise<void> {
  return writeStateFile(path, state, 'an upgrade keeps there what it can go back to, and changes nothing without it')
}

export const removeState = removeStateFile

/**
 * The state that an upgrade begins with. One that was interrupted continues with what it recorded: the images of before the first
 * change. Nodes that joined since are recorded as they are now.
 */
export function begin(earlier: UpgradeState | undefined, now: Omit<UpgradeState, 'done' | 'manifests'>): UpgradeState {
  if (!earlier || earlier.done) return { ...now, done: false, manifests: false }
  const known = new Map(earlier.nodes.map((node) => [node.address, node]))
  return {
    ...now,
    from: earlier.from,
    done: false,
    manifests: earlier.manifests,
    nodes: now.nodes.map((node) => known.get(node.address) ?? node),
  }
}
