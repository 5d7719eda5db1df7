import type { ResourceType } from '../../../cosi/resource.ts'
import type { LogRing } from '../../../supervise/log-ring.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { MachineStatus } from '../resources/machine-status.ts'
import { type Cause, deepestFirst } from './cause.ts'
import { Explainer, nameOf, type Scene } from './explainer.ts'
import { fullDisks, silentEndpoint, silentTimeServers, type World } from './outside.ts'
import { service } from './wellness.ts'

/** What was asked for and why it is as it is; causes deepest first. */
export interface Explanation {
  readonly subject: string
  readonly well: boolean
  readonly summary: string
  readonly causes: readonly Cause[]
}

/** A machine to look at, its disks, its clock and the logs of its services. */
export interface Machinery extends Scene {
  readonly world: World
  log?(service: string): LogRing | undefined
}

const logLines = 3

/** Explains one resource. */
export async function explainResource(
  machinery: Machinery,
  type: ResourceType,
  id: string,
  { namespace = type.namespace, signal }: { namespace?: string; signal?: AbortSignal } = {},
): Promise<Explanation> {
  const explainer = new Explainer(machinery)
  explainer.resource({ type, namespace, id })
  return finish(machinery, explainer, nameOf(type, namespace, id), signal)
}

/** Explains the machine as a whole: why it is not ready, and whatever else fails. */
export async function explainMachine(machinery: Machinery, { signal }: { signal?: AbortSignal } = {}): Promise<Explanation> {
  const explainer = new Explainer(machinery)
  explainer.resource({ type: MachineStatus, id: 'machine' })
  if (!machinery.store.get(MachineConfig, 'v1alpha1')) explainer.resource({ type: MachineConfig, id: 'v1alpha1' })
  for (const { id, state } of machinery.supervisor.list()) if (state !== 'Finished' && state !== 'Skipped') explainer.resource(service(id))
  for (const { controller, state } of machinery.runtime.controllers())
    if (state.lastError || state.troubles.size > 0) explainer.controller(controller.name)
  for (const disk of fullDisks(machinery.world)) explainer.causes.set(disk.subject, { ...disk, depth: 0, because: [] })
  return finish(machinery, explainer, 'the machine', signal)
}

async function finish(machinery: Machinery, explainer: Explainer, subject: string, signal?: AbortSignal): Promise<Explanation> {
  const { causes } = explainer
  await addLogs(machinery, causes)
  if (causes.size > 0) await addOutside(machinery, causes, signal)
  const sorted = deepestFirst([...causes.values()])
  const [root] = sorted
  if (!root) return { subject, well: true, summary: `${subject} is well`, causes: [] }
  const error = root.error ? `: ${firstLine(root.error)}` : ''
  return { subject, well: false, summary: `${root.subject}: ${root.sentence}${error}`, causes: sorted }
}

/** A service that does not stay up has often said why. */
async function addLogs({ log }: Machinery, causes: Map<string, Cause>): Promise<void> {
  for (const cause of causes.values()) {
    if (cause.kind !== 'service' || !cause.error) continue
    const ring = log?.(cause.subject.replace(/^service /, ''))
    if (!ring) continue
    const chunks: Uint8Array[] = []
    for await (const chunk of ring.read({ tailLines: logLines })) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString().trim()
    if (text) cause.error = `${cause.error}\n${text}`
  }
}

/** What lies outside is put behind those whose failures speak of it. */
async function addOutside({ world, store }: Machinery, causes: Map<string, Cause>, signal?: AbortSignal): Promise<void> {
  const behind = (finding: Omit<Cause, 'depth' | 'because'>, speaksOfIt: (cause: Cause) => boolean) => {
    const above = [...causes.values()].filter(speaksOfIt)
    const depth = Math.max(0, ...above.map((cause) => cause.depth + 1))
    for (const cause of above) cause.because.push(finding.subject)
    causes.set(finding.subject, { ...finding, depth, because: [] })
  }
  for (const disk of fullDisks(world)) behind(disk, ({ error = '' }) => /ENOSPC|EDQUOT|no space left|disk quota/i.test(error))
  for (const server of await silentTimeServers(world, store, signal)) behind(server, ({ subject }) => /^TimeStatuses\./.test(subject))
  if (![...causes.values()].some(concernsCluster)) return
  for (const endpoint of await silentEndpoint(store, signal)) behind(endpoint, concernsCluster)
}

/** Whether a cause may have to do with the control plane being out of reach: a leaf that talks to it or waits for it. */
function concernsCluster({ subject, because, kind }: Cause): boolean {
  return (
    because.length === 0 &&
    kind !== 'outside' &&
    /KubeletService|secrets\.API|NodeStatus|k8s\.Endpoint|KubeletKubeconfig|service kubelet/.test(subject)
  )
}

const firstLine = (text: string) => text.split('\n')[0] ?? ''
