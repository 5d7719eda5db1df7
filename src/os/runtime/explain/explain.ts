import type { ResourceType } from '../../../cosi/resource.ts'
import type { LogRing } from '../../../supervise/log-ring.ts'
import { type ConfigHistory, notReached } from '../../config/history/history.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { EtcdView } from '../../etcd/view.ts'
import { MachineStatus } from '../resources/machine-status.ts'
import { type Cause, deepestFirst } from './cause.ts'
import { endpointTrouble } from './endpoint.ts'
import { etcdTrouble } from './etcd-trouble.ts'
import { Explainer, nameOf, type Scene } from './explainer.ts'
import { type Evidence, findings, settingsOf } from './findings.ts'
import { lastWordsOf } from './last-words.ts'
import { fullDisks, silentTimeServers, type World } from './outside.ts'
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
  readonly world: World & Scene['world']
  log?(service: string): LogRing | undefined
  /** Configurations that were applied, oldest first. */
  readonly history?: Pick<ConfigHistory, 'list'>
  /** What etcd says of itself; rejects when this node's does not answer. */
  etcd?(): Promise<EtcdView>
}

/** Explains one resource. */
export async function explainResource(
  machinery: Machinery,
  type: ResourceType,
  id: string,
  { namespace = type.namespace, signal }: { namespace?: string; signal?: AbortSignal } = {},
): Promise<Explanation> {
  const explainer = new Explainer(machinery)
  return finish(machinery, explainer, explainer.resource({ type, namespace, id }), {
    subject: nameOf(type, namespace, id),
    whole: false,
    signal,
  })
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
  const evidence = evidenceOf(machinery)
  for (const finding of [...fullDisks(world), ...findings(evidence)]) {
    explainer.causes.set(finding.subject, { ...finding, depth: 0, because: [] })
    roots.push(finding.subject)
  }
  const explanation = await finish(machinery, explainer, roots, { subject: 'the machine', whole: true, signal })
  const reverted = lostConfiguration(evidence.history)
  return reverted === undefined ? explanation : { ...explanation, summary: `${explanation.summary}\n${reverted}` }
}

function evidenceOf({ store, world, history = { list: () => [] } }: Machinery): Evidence {
  return { store, files: world.files, history }
}

/** The newest configuration where it is not in force because it cut the machine off: an operator may still take it for granted. */
function lostConfiguration(history: Pick<ConfigHistory, 'list'>): string | undefined {
  const { id, by, time, outcome, reason } = history.list().at(-1) ?? {}
  if (outcome !== 'reverted' || reason !== notReached) return undefined
  const who = by?.actor || by?.peer
  return `configuration ${id}, applied${who ? ` by ${who}` : ''} at ${time}, is not in force: it was reverted, for ${notReached}`
}

interface Question {
  readonly subject: string
  /** Whether it is about the machine as a whole, so that also what nothing suffers from yet is looked for. */
  readonly whole: boolean
  readonly signal?: AbortSignal | undefined
}

async function finish(
  machinery: Machinery,
  explainer: Explainer,
  roots: readonly string[],
  { subject, whole, signal }: Question,
): Promise<Explanation> {
  const evidence = evidenceOf(machinery)
  explainer.keep(roots)
  const { causes } = explainer
  await addWords(machinery, evidence, causes)
  await addOutside(machinery, evidence, causes, { whole, signal })
  const sorted = deepestFirst([...causes.values()])
  const [root] = sorted
  if (!root) return { subject, well: true, summary: `${subject} is well`, causes: [] }
  const error = root.error ? `: ${lastLine(root.error)}` : ''
  return { subject, well: false, summary: `${root.subject}: ${root.sentence}${error}`, causes: sorted }
}

/** A service that does not stay up has often said why, and something may have changed its settings. */
async function addWords({ log, supervisor }: Machinery, evidence: Evidence, causes: Map<string, Cause>): Promise<void> {
  for (const cause of [...causes.values()]) {
    const { logOf: id, subject, sentence, error } = cause
    if (id === undefined) continue
    const { logFrom = 0, events = [] } = supervisor.get(id) ?? {}
    const words = await lastWordsOf(log?.(id), logFrom)
    const changed = settingsOf(id, events.findLast(({ health }) => health.healthy)?.time, evidence)
    causes.set(subject, {
      ...cause,
      sentence: [sentence, changed].filter(Boolean).join('; '),
      // What is said last is the shortest reason.
      error: [error, words].filter(Boolean).join('\n'),
    })
  }
}

/** Who asks the time servers. */
const timeKeeper = 'time.SyncController'

/** What lies outside is put behind those whose failures speak of it. */
async function addOutside(
  { world, store, etcd }: Machinery,
  evidence: Evidence,
  causes: Map<string, Cause>,
  { whole, signal }: Pick<Question, 'whole' | 'signal'>,
): Promise<void> {
  if (causes.size === 0 && !whole) return
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
  if (etcd && causes.has('service etcd')) {
    // One that does not answer at all has its own cause.
    const found = await etcd().then(etcdTrouble, () => [])
    for (const finding of found) behind(finding, ({ subject }) => subject === 'service etcd')
  }
  if (!whole && ![...causes.values()].some(concernsCluster)) return
  const kept = [...causes.keys()].filter((subject) => subject === 'service etcd' || /^StaticPodStatuses\..*\/kube-apiserver-/.test(subject))
  if (kept.length > 0) {
    // This node is to answer there itself, and what keeps it from that is known.
    for (const cause of causes.values()) if (concernsCluster(cause)) cause.because.push(...kept)
    return
  }
  for (const trouble of await endpointTrouble(evidence, signal)) behind(trouble, concernsCluster)
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
