import type { ResourceType } from '../../../cosi/resource.ts'
import type { LogRing } from '../../../supervise/log-ring.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { MachineStatus } from '../resources/machine-status.ts'
import { type Cause, deepestFirst } from './cause.ts'
import { Explainer, nameOf, type Scene } from './explainer.ts'
import { lastWords } from './last-words.ts'
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

const logLines = 30

/** Explains one resource. */
export async function explainResource(
  machinery: Machinery,
  type: ResourceType,
  id: string,
  { namespace = type.namespace, signal }: { namespace?: string; signal?: AbortSignal } = {},
): Promise<Explanation> {
  const explainer = new Explainer(machinery)
  return finish(machinery, explainer, explainer.resource({ type, namespace, id }), nameOf(type, namespace, id), signal)
}

/** Explains the machine as a whole: why it is not ready, and whatever else fails. */
export async function explainMachine(machinery: Machinery, { signal }: { signal?: AbortSignal } = {}): Promise<Explanation> {
  const { store, supervisor, runtime, world } = machinery
  const explainer = new Explainer(machinery)
  const roots = explainer.resource({ type: MachineStatus, id: 'machine' })
  if (!store.get(MachineConfig, 'v1alpha1')) roots.push(...explainer.resource({ type: MachineConfig, id: 'v1alpha1' }))
  for (const { id, state } of supervisor.list())
    if (state !== 'Finished' && state !== 'Skipped') roots.push(...explainer.resource(service(id)))
  for (const { controller, state } of runtime.controllers())
    if (state.lastError || state.troubles.size > 0) roots.push(...explainer.controller(controller.name))
  for (const disk of fullDisks(world)) {
    explainer.causes.set(disk.subject, { ...disk, depth: 0, because: [] })
    roots.push(disk.subject)
  }
  return finish(machinery, explainer, roots, 'the machine', signal)
}

async function finish(
  machinery: Machinery,
  explainer: Explainer,
  roots: readonly string[],
  subject: string,
  signal?: AbortSignal,
): Promise<Explanation> {
  explainer.keep(roots)
  const { causes } = explainer
  await addLogs(machinery, causes)
  if (causes.size > 0) await addOutside(machinery, causes, signal)
  const sorted = deepestFirst([...causes.values()])
  const [root] = sorted
  if (!root) return { subject, well: true, summary: `${subject} is well`, causes: [] }
  const error = root.error ? `: ${lastLine(root.error)}` : ''
  return { subject, well: false, summary: `${root.subject}: ${root.sentence}${error}`, causes: sorted }
}

/** A service that does not stay up has often said why. */
async function addLogs({ log }: Machinery, causes: Map<string, Cause>): Promise<void> {
  for (const cause of causes.values()) {
    // Only of one that ran: what it said before says nothing of why it cannot be started.
    if (cause.kind !== 'service' || !/^(exited|killed|process)\b/i.test(cause.error ?? '')) continue
    const ring = log?.(cause.subject.replace(/^service /, ''))
    if (!ring) continue
    const chunks: Uint8Array[] = []
    for await (const chunk of ring.read({ tailLines: logLines })) chunks.push(chunk)
    const text = lastWords(Buffer.concat(chunks).toString())
    if (text) cause.error = `${text}\n${cause.error}`
  }
}

/** Who asks the time servers. */
const timeKeeper = 'time.SyncController'

/** What lies outside is put behind those whose failures speak of it. */
async function addOutside({ world, store }: Machinery, causes: Map<string, Cause>, signal?: AbortSignal): Promise<void> {
  const behind = (finding: Omit<Cause, 'depth' | 'because'>, speaksOfIt: (cause: Cause) => boolean) => {
    const above = [...causes.values()].filter(speaksOfIt)
    const depth = Math.max(0, ...above.map((cause) => cause.depth + 1))
    for (const cause of above) cause.because.push(finding.subject)
    causes.set(finding.subject, { ...finding, depth, because: [] })
  }
  for (const disk of fullDisks(world)) behind(disk, ({ error = '' }) => /ENOSPC|EDQUOT|no space left|disk quota/i.test(error))
  const troubled = causes.has(`controller ${timeKeeper}`)
  for (const server of await silentTimeServers(world, store, troubled, signal))
    behind(server, ({ subject }) => subject === `controller ${timeKeeper}` || /^TimeStatuses\./.test(subject))
  if (![...causes.values()].some(concernsCluster)) return
  const kept = [...causes.keys()].filter((subject) => subject === 'service etcd' || /^StaticPodStatuses\..*\/kube-apiserver-/.test(subject))
  if (kept.length > 0) {
    // This node is to answer there itself, and what keeps it from that is known.
    for (const cause of causes.values()) if (concernsCluster(cause)) cause.because.push(...kept)
    return
  }
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

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1) ?? ''
