import type { ResourceType } from '../../cosi/resource.ts'
import { lastWordsOf } from '../../supervise/last-words.ts'
import type { LogRing } from '../../supervise/log-ring.ts'
import { type ConfigHistory, revertReasons } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { contacts } from '../contacts.ts'
import type { EtcdView } from '../etcd/public.ts'
import { StaticPodStatus } from '../k8s/resources/static-pod.ts'
import { NetworkStatus } from '../network/resources/network-status.ts'
import { MachineStatus } from '../runtime/resources/machine-status.ts'
import { SiderolinkStatus } from '../siderolink/resources/siderolink.ts'
import { type Cause, deepestFirst, isService, subjectOf } from './cause.ts'
import { endpointTrouble } from './endpoint.ts'
import { etcdTrouble } from './etcd-trouble.ts'
import { Explainer, nameOf, type Scene } from './explainer.ts'
import { type Evidence, type Finding, findings, settingsOf } from './findings.ts'
import { fullDisks, fullDisksWithUsers, silentTimeServers, type World } from './outside.ts'
import { silentPath } from './path.ts'
import { controlPlanePod, service } from './wellness.ts'

/** The explained subject and its causes, deepest first. */
export interface Explanation {
  readonly subject: string
  readonly well: boolean
  readonly summary: string
  readonly causes: readonly Cause[]
}

/** The machine to explain, its disks, its clock, its network and the logs of its services. */
export interface Machinery extends Scene {
  readonly world: World & Scene['world']
  log?(service: string): LogRing | undefined
  /** Configurations that were applied, oldest first. */
  readonly history?: Pick<ConfigHistory, 'list'>
  /** etcd's own view of its members; rejects when this node's etcd does not answer. */
  etcd?(): Promise<EtcdView>
}

const siderolinkId = 'siderolink-status'

/** Explains one resource. */
export async function explainResource(
  machinery: Machinery,
  type: ResourceType,
  id: string,
  { namespace = type.namespace, signal }: { namespace?: string | undefined; signal?: AbortSignal } = {},
): Promise<Explanation> {
  const explainer = new Explainer(machinery)
  return finish(machinery, explainer, explainer.resource({ type, namespace, id }), {
    subject: nameOf(type, namespace, id),
    whole: false,
    signal,
  })
}

/** Explains the machine as a whole: why it is not ready, and everything else that fails. */
export async function explainMachine(machinery: Machinery, { signal }: { signal?: AbortSignal } = {}): Promise<Explanation> {
  const { store, supervisor, runtime, world } = machinery
  const explainer = new Explainer(machinery)
  const roots = explainer.resource({ type: MachineStatus, id: 'machine' })
  if (!store.get(MachineConfig, 'v1alpha1')) roots.push(...explainer.resource({ type: MachineConfig, id: 'v1alpha1' }))
  if (store.get(SiderolinkStatus, siderolinkId)) roots.push(...explainer.resource({ type: SiderolinkStatus, id: siderolinkId }))
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

/** The newest configuration, if it was reverted because it cut the machine off: an operator may assume that it is in force. */
function lostConfiguration(history: Pick<ConfigHistory, 'list'>): string | undefined {
  const { id, by, time, outcome, cause } = history.list().at(-1) ?? {}
  if (outcome !== 'reverted' || cause !== 'unreached') return undefined
  const who = by?.actor || by?.peer
  return `configuration ${id}, applied${who ? ` by ${who}` : ''} at ${time}, is not in force: it was reverted, for ${revertReasons.unreached}`
}

interface Question {
  readonly subject: string
  /** Whether the subject is the machine as a whole, so that causes without consequences yet are included. */
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
  await addPath(machinery, causes, signal)
  const sorted = deepestFirst([...causes.values()])
  const [root] = sorted
  if (!root) return { subject, well: true, summary: `${subject} is healthy`, causes: [] }
  const error = root.error ? `: ${lastLine(root.error)}` : ''
  return { subject, well: false, summary: `${root.subject}: ${root.sentence}${error}`, causes: sorted }
}

/** Adds the last output of services that exited, and changes of their settings. */
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
      // The last output is the shortest reason.
      error: [error, words].filter(Boolean).join('\n'),
      output: words,
    })
  }
}

/** Adds causes outside of the store behind the failures that mention them. */
async function addOutside(
  { world, store, etcd }: Machinery,
  evidence: Evidence,
  causes: Map<string, Cause>,
  { whole, signal }: Pick<Question, 'whole' | 'signal'>,
): Promise<void> {
  if (causes.size === 0 && !whole) return
  const behind = placing(causes)
  for (const disk of await fullDisksWithUsers(world)) behind(disk, lacksSpace)
  const concernsTime = (cause: Cause) => cause.contacts?.includes(contacts.timeServers) ?? false
  const troubled = [...causes.values()].some((cause) => cause.about.kind === 'controller' && concernsTime(cause))
  for (const server of await silentTimeServers(world, store, troubled, signal)) behind(server, concernsTime)
  // Where etcd's own settings keep it from starting, what its members miss is the consequence.
  if (etcd && causes.has(subjectOf('service', 'etcd')) && !causes.has(subjectOf('component', 'etcd'))) {
    // An etcd that does not answer at all has its own cause.
    const found = await etcd().then(etcdTrouble, () => [])
    for (const finding of found) behind(finding, (cause) => isService(cause, 'etcd'))
  }
  if (!whole && ![...causes.values()].some(concernsCluster)) return
  const kept = [...causes.values()].filter((cause) => isService(cause, 'etcd') || isApiServer(cause)).map(({ subject }) => subject)
  if (kept.length > 0) {
    // This node serves the endpoint itself, and the cause of that is known.
    for (const cause of causes.values()) if (concernsCluster(cause)) cause.because.push(...kept)
    return
  }
  for (const trouble of await endpointTrouble(evidence, signal)) behind(trouble, concernsCluster)
}

/** Adds what does not answer on the way to other machines, behind everything that needs one of them. */
async function addPath({ world, store }: Machinery, causes: Map<string, Cause>, signal: AbortSignal | undefined): Promise<void> {
  const above = new Set([...causes.values()].filter(needsNetwork))
  if (above.size === 0) return
  const behind = placing(causes)
  for (const finding of await silentPath(world, store, signal)) behind(finding, (cause) => above.has(cause))
}

/** Places a finding behind the causes that it may be the reason of. */
const placing = (causes: Map<string, Cause>) => (finding: Finding, mentionsIt: (cause: Cause) => boolean) => {
  const above = [...causes.values()].filter(mentionsIt)
  const depth = Math.max(0, ...above.map((cause) => cause.depth + 1))
  for (const cause of above) cause.because.push(finding.subject)
  causes.set(finding.subject, { ...finding, depth, because: [] })
}

/** Whether it fails for want of another machine: a party that it connects to, one that does not answer, or the network as a whole. */
function needsNetwork({ about, silent = false, contacts: parties = [] }: Cause): boolean {
  return silent || parties.length > 0 || (about.kind === 'resource' && about.type === NetworkStatus.type)
}

/** Whether an unreachable control plane may be the reason: a leaf that connects to it or waits for it. */
function concernsCluster({ because, kind, contacts: parties = [] }: Cause): boolean {
  return because.length === 0 && kind !== 'outside' && parties.includes(contacts.controlPlane)
}

/** Whether it is the API server of this node. */
function isApiServer({ about }: Cause): boolean {
  return about.kind === 'resource' && about.type === StaticPodStatus.type && controlPlanePod(about.id)?.component === 'apiserver'
}

function lacksSpace({ code = '', output = '' }: Cause): boolean {
  return code === 'ENOSPC' || code === 'EDQUOT' || outOfSpace.test(output)
}

/** How other programs and the kubelet write that a disk is full; this system's own errors have a code. */
const outOfSpace = /ENOSPC|EDQUOT|no space left|disk quota/i

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1) ?? ''
