/** The rotation of the authorities: of the machine API, of Kubernetes, or of both, one after the other. */

import { newClientConfig } from '../../../os/config/generate/talosconfig.ts'
import { day, fromBase64, newCA, newCertificate, type PemPair, toBase64 } from '../../../pki/certificate.ts'
import type { Cluster } from '../cluster.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { atEndpoints, readConfig } from '../machine/machine.ts'
import { contextOf, openTalosconfig } from '../talosconfig/file.ts'
import { authorityOf, type EncodedPair, fingerprintOf, othersAccepted, type Section, stageOf } from './authority.ts'
import { writeKubeconfig, writeTalosconfig } from './client-files.ts'
import { KubernetesAccess, kubernetesSteps } from './kubernetes.ts'
import { Connections, machineApiSteps } from './machine-api.ts'
import { inOrder, type MachineFlags, type Machines, machinesOf } from './machines.ts'
import { authorityRounds } from './rounds.ts'
import { planRounds, runRounds } from './run.ts'
import { type AuthorityState, findState, type RotationState, readState, stateFolder, writeState } from './state.ts'
import type { RestartScope } from './workloads.ts'

/** The flags of `talosctl rotate-ca`. */
export interface RotateOptions extends MachineFlags {
  readonly talosconfig?: string
  readonly context?: string
  readonly talos: boolean
  readonly kubernetes: boolean
  readonly dryRun: boolean
  readonly output: string
  readonly k8sEndpoint?: string
  readonly kubeconfig?: string
  readonly restartWorkloads: RestartScope
}

/** One run of the command. */
interface Run {
  readonly io: Io
  readonly options: RotateOptions
  readonly folder: string
  readonly machines: Machines
  /** Of the first control plane when the run began. */
  readonly config: Awaited<ReturnType<typeof readConfig>>
  state: RotationState
  report(line: string): void
}

/** Rotates what the flags name; a rotation that was interrupted is continued with the same new authorities. */
export async function rotateAuthorities(io: Io, cluster: Cluster, options: RotateOptions): Promise<void> {
  if (!options.talos && !options.kubernetes)
    throw new UsageError('nothing to rotate: --talos=false and --kubernetes=false exclude each other')
  const target = await cluster.target()
  if (!target.tls?.cert || !target.tls.key) throw new UsageError(`${target.source} has no client certificate, as an administrator has`)
  const folder = stateFolder(io.env)
  const known = await findState(folder, toBase64(target.tls.cert))
  const connections = known?.machine && new Connections(io, target, known.machine)
  const go = async (reached: Cluster, { id, ...found }: Awaited<ReturnType<typeof inspect>>) => {
    const state = known?.cluster === id ? known : await readState(folder, id)
    await rotateIn({ io, options, folder, ...found, state, report: (line) => io.stderr.write(`${line}\n`) }, reached)
  }
  if (!connections) return atEndpoints(io, cluster, async (own) => go(own, await inspect(own, options)))
  const { cluster: reached, value } = await connections.reaching((one) => inspect(one, options))
  try {
    await go(reached, value)
  } finally {
    await reached.close()
  }
}

/** The machines of the cluster, and the configuration of the first control plane. */
async function inspect(cluster: Cluster, options: MachineFlags) {
  const machines = await machinesOf(cluster, options)
  const [first = ''] = machines.controlPlanes
  const config = await readConfig(cluster, first)
  const id = config.v1alpha1?.cluster?.id
  if (!id) throw new UsageError(`${first} has no cluster.id in its configuration, by which a rotation knows its cluster`)
  return { machines, config, id }
}

async function rotateIn(run: Run, cluster: Cluster): Promise<void> {
  const { io, options, folder, state } = run
  const target = await cluster.target()
  if (options.talos && !state.machine) state.machine = begin(run, 'machine', machineClients(run, target))
  if (options.kubernetes && !state.kubernetes) state.kubernetes = begin(run, 'cluster', kubernetesClients)
  if (options.dryRun) return plan(run, cluster)
  await writeState(folder, state)
  if (options.talos && state.machine && !state.machine.done) await rotateMachineApi(run, cluster, state.machine)
  if (options.kubernetes && state.kubernetes && !state.kubernetes.done) {
    const connections = state.machine && new Connections(io, target, state.machine)
    const { cluster: reached } = connections ? await connections.reaching((one) => inspect(one, options)) : { cluster }
    try {
      await rotateKubernetes(run, reached, state.kubernetes)
    } finally {
      if (reached !== cluster) await reached.close()
    }
  }
  const { machine, kubernetes, ...others } = state
  // What was interrupted earlier and is not part of this run stays.
  await writeState(folder, {
    ...others,
    ...(machine && !machine.done && { machine }),
    ...(kubernetes && !kubernetes.done && { kubernetes }),
  })
}

type Clients = (old: EncodedPair, next: EncodedPair) => Pick<AuthorityState, 'oldClient' | 'nextClient'>

/** Makes the new authority. Nothing knows it yet. */
function begin({ io, config, machines }: Run, section: Section, clients: Clients): AuthorityState {
  const old = authorityOf(config, section)
  if (!old)
    throw new UsageError(
      `${machines.controlPlanes[0]} has no ${section}.ca with a key in its configuration: is it a control plane of the cluster?`,
    )
  const next = encoded(
    section === 'machine'
      ? newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519', now: io.now() })
      : newCA({ subject: { organizations: ['kubernetes'] }, kind: 'ecdsa', now: io.now() }),
  )
  return { old: { crt: old.crt }, next, ...clients(old, next), done: false }
}

const encoded = ({ crt, key }: PemPair): EncodedPair => ({ crt: toBase64(crt), key: toBase64(key) })
const decoded = ({ crt, key }: EncodedPair): PemPair => ({ crt: fromBase64(crt), key: fromBase64(key) })

/** The administrator in the client configuration, and the same of the new authority. */
const machineClients =
  ({ io }: Run, { tls }: Awaited<ReturnType<Cluster['target']>>): Clients =>
  (_, next) => {
    const { contexts } = newClientConfig(next, { clusterName: 'client', now: io.now() })
    const { crt = '', key = '' } = contexts.client ?? {}
    return { oldClient: encoded({ crt: tls?.cert ?? '', key: tls?.key ?? '' }), nextClient: { crt, key } }
  }

/** Administrators for the proofs only. */
const kubernetesClients: Clients = (old, next) => {
  const client = (ca: EncodedPair) =>
    encoded(
      newCertificate({
        ca: decoded(ca),
        subject: { commonName: 'talosctl-rotate-ca', organizations: ['system:masters'] },
        usage: ['clientAuth'],
        lifetime: day,
      }),
    )
  return { oldClient: client(old), nextClient: client(next) }
}

async function plan({ io, options, machines, state }: Run, cluster: Cluster): Promise<void> {
  const nodes = inOrder(machines)
  const out = (line: string) => io.stdout.write(`${line}\n`)
  for (const [requested, section, part, subject] of [
    [options.talos, 'machine', state.machine, 'machine API'],
    [options.kubernetes, 'cluster', state.kubernetes, 'Kubernetes'],
  ] as const) {
    if (!requested || !part) continue
    out(`${subject}: the authority ${fingerprintOf(part.old.crt)} is replaced`)
    const steps = {
      subject,
      nodes,
      read: (node: string) => readConfig(cluster, node),
      stageOf: (config: Run['config']) => stageOf(config, section, part),
      advance: (config: Run['config']) => config,
      report: out,
    }
    for (const line of await planRounds(authorityRounds, steps)) out(`  ${line}`)
  }
  if (options.talos) out(`the new client configuration is written to "${options.output}"`)
  out('nothing was changed: run it with --dry-run=false')
}

/** Reports authorities that stay accepted although nobody may know why. */
async function reportOthers({ machines, report }: Run, cluster: Cluster, section: Section, state: AuthorityState): Promise<void> {
  for (const node of inOrder(machines))
    for (const other of othersAccepted(await readConfig(cluster, node), section, state))
      report(`WARNING: ${node} accepts a third authority, ${other}, which stays in ${section}.acceptedCAs: remove it if nobody uses it`)
}

async function rotateMachineApi(run: Run, cluster: Cluster, state: AuthorityState): Promise<void> {
  const { io, options, machines, report } = run
  const target = await cluster.target()
  const connections = new Connections(io, target, state)
  await reportOthers(run, cluster, 'machine', state)
  const steps = machineApiSteps(io, connections, machines, state, report)
  try {
    await runRounds(authorityRounds, steps)
  } finally {
    await steps.close()
  }
  const used = await openTalosconfig(io, options.talosconfig)
  const { name } = contextOf(used, options.context)
  report(`machine API: client configuration written to ${await writeTalosconfig(used, options.output, name, target.endpoints, state)}`)
  state.done = true
  await writeState(run.folder, run.state)
}

async function rotateKubernetes(run: Run, cluster: Cluster, state: AuthorityState): Promise<void> {
  const { io, options, machines, report, config } = run
  const server = options.k8sEndpoint ?? config.v1alpha1?.cluster?.controlPlane?.endpoint
  if (!server) throw new UsageError('the configuration has no cluster.controlPlane.endpoint: name it with --k8s-endpoint')
  await reportOthers(run, cluster, 'cluster', state)
  const access = new KubernetesAccess(server, state)
  await runRounds(authorityRounds, kubernetesSteps(io, cluster, access, machines, { state, restarted: options.restartWorkloads, report }))
  if (options.kubeconfig) {
    await writeKubeconfig(io, cluster, machines.controlPlanes[0] ?? '', options.kubeconfig)
    report(`Kubernetes: kubeconfig "${options.kubeconfig}" renewed`)
  } else report('Kubernetes: kubeconfigs of before are refused: get a new one with "talosctl kubeconfig --force"')
  state.done = true
  await writeState(run.folder, run.state)
}
