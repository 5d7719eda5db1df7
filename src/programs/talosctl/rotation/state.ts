/**
 * What a rotation has to remember so that it continues with the same new secrets after an interruption: a file in the
 * folder of the client that only its owner may read. It is written before the first machine is changed, and removed after the last.
 */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { codeOf, failedWith } from '../../../wire/errno.ts'
import { UsageError } from '../failure.ts'
import { clientFolder, readStateFile, removeStateFile, writeStateFile } from '../state-file.ts'

const pair = v.object({ crt: v.string(), key: v.string() })

/** The replacement of one authority: certificates and keys are base64 of PEM. */
const authority = v.object({
  old: v.object({ crt: v.string() }),
  next: pair,
  /** Clients of both, for the proofs. */
  oldClient: pair,
  nextClient: pair,
  done: v.boolean(),
})

const schema = v.object({
  /** `cluster.id` of the cluster. */
  cluster: v.string(),
  machine: v.optional(authority),
  kubernetes: v.optional(authority),
  /** Base64 of PEM. */
  serviceAccount: v.optional(v.object({ oldPublic: v.string(), key: v.string() })),
  /** Base64. */
  secretbox: v.optional(v.object({ old: v.string(), next: v.string() })),
})

/** The state of the rotations of one cluster. */
export type RotationState = v.InferOutput<typeof schema>

/** The replacement of one authority. */
export type AuthorityState = v.InferOutput<typeof authority>

/** The folder with the states of all clusters. */
export function stateFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(clientFolder(env), 'rotations')
}

/** Where the state of a cluster is kept. */
export const statePath = (folder: string, cluster: string): string => join(folder, `${encodeURIComponent(cluster)}.json`)

/** Reads the state of a cluster; one without rotations when there is none. */
export async function readState(folder: string, cluster: string): Promise<RotationState> {
  return (await readFileOf(statePath(folder, cluster))) ?? { cluster }
}

/** The state of the cluster whose old or new client certificate (base64 of PEM) this is: its id cannot be queried with one that is refused. */
export async function findState(folder: string, crt: string): Promise<RotationState | undefined> {
  let names: string[] = []
  try {
    names = (await readdir(folder)).filter((name) => name.endsWith('.json'))
  } catch (error) {
    if (!failedWith(error, 'ENOENT')) throw new UsageError(`read "${folder}": ${codeOf(error)}`)
  }
  for (const name of names) {
    const state = await readFileOf(join(folder, name))
    if (state?.machine && [state.machine.oldClient.crt, state.machine.nextClient.crt].includes(crt)) return state
  }
  return undefined
}

function readFileOf(path: string): Promise<RotationState | undefined> {
  return readStateFile(path, schema, 'the state of a rotation: move it away, it may hold keys that are in use')
}

/** Writes the state whole or not at all; one without a rotation removes the file. */
export async function writeState(folder: string, state: RotationState): Promise<void> {
  const path = statePath(folder, state.cluster)
  const { cluster: _, ...rotations } = state
  if (Object.values(rotations).every((one) => one === undefined)) return removeStateFile(path)
  await writeStateFile(path, state, 'a rotation keeps its new keys there, and changes nothing without it')
}
