/** The rotation of keys of Kubernetes: the one that signs tokens of service accounts, and the one that encrypts secrets in etcd. */

import { randomBytes } from 'node:crypto'
import { core, type KubeClient, kubeClient, pathOf } from '../../../kube/client.ts'
import { KubeError } from '../../../kube/errors.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import { toBase64 } from '../../../pki/certificate.ts'
import { newRsaKey } from '../../../pki/key.ts'
import type { Cluster } from '../cluster.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { fetchKubeconfig } from '../kubeconfig-fetch.ts'
import { applyConfig, atEndpoints, nameOf, readConfig, resourceOf } from '../machine/machine.ts'
import { within } from '../machine/within.ts'
import {
  advanceSecretbox,
  advanceServiceAccount,
  keyIdIn,
  keyIdOf,
  publicKeyOf,
  secretboxRounds,
  secretboxStage,
  serviceAccountRounds,
  serviceAccountStage,
} from './keys.ts'
import { checkComponents } from './kubernetes.ts'
import { fileOf, inOrder, type MachineFlags, type Machines, machinesOf, restartKubelet } from './machines.ts'
import type { Round } from './rounds.ts'
import { planRounds, type RotationSteps, runRounds } from './run.ts'
import { type RotationState, readState, stateFolder, writeState } from './state.ts'
import { projectedFiles } from './workloads.ts'

/** The flags of `talosctl rotate`. */
export interface KeyOptions extends MachineFlags {
  readonly dryRun: boolean
  readonly k8sEndpoint?: string
}

const [settleTimeout, proofTimeout] = [240_000, 300_000]

/** Clients read the file with their token again every minute (client-go). In milliseconds. */
const tokenReload = 75_000

/** What both rotations work with. */
interface Run {
  readonly io: Io
  readonly cluster: Cluster
  readonly options: KeyOptions
  readonly folder: string
  readonly machines: Machines
  readonly config: Awaited<ReturnType<typeof readConfig>>
  readonly state: RotationState
  report(line: string): void
  /** Runs `act` with a client of Kubernetes. */
  kubernetes<T>(act: (kubernetes: KubeClient) => Promise<T>): Promise<T>
}

async function prepare(io: Io, cluster: Cluster, options: KeyOptions): Promise<Run> {
  const machines = await machinesOf(cluster, options)
  const [first = ''] = machines.controlPlanes
  const config = await readConfig(cluster, first)
  const id = config.v1alpha1?.cluster?.id
  if (!id) throw new UsageError(`${first} has no cluster.id in its configuration, by which a rotation knows its cluster`)
  const folder = stateFolder(io.env)
  const access = accessOf(parseKubeconfig(await fetchKubeconfig(cluster, first)))
  const server = options.k8sEndpoint ?? access.server
  return {
    io,
    cluster,
    options,
    folder,
    machines,
    config,
    state: await readState(folder, id),
    report: (line) => io.stderr.write(`${line}\n`),
    async kubernetes(act) {
      const client = kubeClient({ ...access, server })
      try {
        return await act(client)
      } finally {
        client.close()
      }
    },
  }
}

/** Changes every control plane in each round, and waits until its components run with what it was given. */
async function carryOut<R extends Round>(
  run: Run,
  subject: string,
  rounds: readonly R[],
  steps: Pick<RotationSteps<R>, 'stageOf' | 'advance' | 'prove'>,
): Promise<boolean> {
  const { io, cluster, machines, options, report } = run
  const nodes = machines.controlPlanes
  const read = (node: string) => readConfig(cluster, node)
  if (options.dryRun) {
    io.stdout.write(`${subject} is replaced\n`)
    for (const line of await planRounds(rounds, { ...steps, subject, nodes, read, report })) io.stdout.write(`  ${line}\n`)
    io.stdout.write('nothing was changed: run it with --dry-run=false\n')
    return false
  }
  const versions = new Map<string, string>()
  const settled = (node: string) =>
    within(io, settleTimeout, `${node} after its change`, async () => {
      if ((await secretsVersion(cluster, node)) === versions.get(node)) throw new Error('the new secrets are not on its disk yet')
      const name = await nameOf(cluster, node)
      await run.kubernetes((kubernetes) => checkComponents(cluster, kubernetes, node, name))
    })
  await writeState(run.folder, run.state)
  await runRounds(rounds, {
    ...steps,
    subject,
    nodes,
    read,
    report,
    async apply(node, config) {
      versions.set(node, await secretsVersion(cluster, node))
      await applyConfig(io, cluster, node, config)
    },
    settle: settled,
    async prove(round) {
      // Also those that an interrupted run has changed and not waited for.
      for (const node of nodes) {
        versions.delete(node)
        await settled(node)
      }
      await steps.prove(round)
    },
  })
  return true
}

async function secretsVersion(cluster: Cluster, node: string): Promise<string> {
  const type = 'SecretStatuses.kubernetes.talos.dev'
  return (await resourceOf<{ version: string }>(cluster, node, 'controlplane', type, 'static-pods')).version
}

/** Replaces the key that signs tokens of service accounts. */
export const rotateServiceAccountKey = (io: Io, cluster: Cluster, options: KeyOptions): Promise<void> =>
  atEndpoints(io, cluster, (own) => serviceAccountKeyIn(io, own, options))

async function serviceAccountKeyIn(io: Io, cluster: Cluster, options: KeyOptions): Promise<void> {
  const run = await prepare(io, cluster, options)
  const old = run.config.v1alpha1?.cluster?.serviceAccount?.key
  if (!old) throw new UsageError('the control plane has no cluster.serviceAccount.key in its configuration')
  run.state.serviceAccount ??= { oldPublic: publicKeyOf(old), key: toBase64((await newRsaKey()).pem) }
  const keys = run.state.serviceAccount
  let before: string | undefined
  const done = await carryOut(run, 'key of service accounts', serviceAccountRounds, {
    stageOf: (config) => serviceAccountStage(config, keys),
    advance: (config, stage) => advanceServiceAccount(config, keys, stage),
    async prove({ stage }) {
      if (stage === 1) before = await run.kubernetes(newToken)
      if (stage === 2) await reissueTokens(run, keys.key)
      if (stage === 3) await proveTokens(run, keys.key, before)
    },
  })
  if (!done) return
  run.state.serviceAccount = undefined
  await writeState(run.folder, run.state)
}

/** A new token of the default service account. */
async function newToken(kubernetes: KubeClient): Promise<string> {
  const account = '/api/v1/namespaces/kube-system/serviceaccounts/default/token'
  const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } })
  const { status } = await kubernetes.request<{ status?: { token?: string } }>('POST', account, { body })
  return status?.token ?? ''
}

/** Whether the API server accepts a token. */
async function isAccepted(kubernetes: KubeClient, token: string): Promise<boolean> {
  const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } })
  const path = '/apis/authentication.k8s.io/v1/tokenreviews'
  const { status } = await kubernetes.request<{ status?: { authenticated?: boolean } }>('POST', path, { body })
  return status?.authenticated === true
}

/** Brings a token of the new key to everything that has one, and waits until it is used. */
async function reissueTokens(run: Run, key: string): Promise<void> {
  const { io, cluster, machines, report, kubernetes } = run
  const kid = keyIdOf(key)
  await within(io, proofTimeout, 'the API server signs with the new key', async () => {
    if (keyIdIn(await kubernetes(newToken)) !== kid) throw new Error('it still signs with the old one')
  })
  await reissueSecrets(run, kid)
  const nodes = inOrder(machines)
  const addresses = new Map(await Promise.all(nodes.map(async (node): Promise<[string, string]> => [await nameOf(cluster, node), node])))
  // A kubelet keeps the tokens of its pods in memory until most of their time is over.
  for (const node of nodes) await restartKubelet(cluster, node)
  await within(io, proofTimeout, 'every pod has a token of the new key', async () => {
    for (const { pod, node, path } of await kubernetes((client) => projectedFiles(client, 'tokens'))) {
      const address = addresses.get(node)
      if (address && keyIdIn(await fileOf(cluster, address, path)) !== kid) throw new Error(`pod ${pod} has one of the old key`)
    }
  })
  report(`key of service accounts: every pod has a new token; waiting ${tokenReload / 1000} s until programs have read it`)
  await io.pause(tokenReload)
  io.signal.throwIfAborted()
}

/** Has the tokens that are kept in Secrets made again. */
async function reissueSecrets({ io, kubernetes }: Run, kid: string): Promise<void> {
  const query = { fieldSelector: 'type=kubernetes.io/service-account-token' }
  const stale = async (client: KubeClient) =>
    (await client.list(core.secret, query)).items.filter(({ data }) => {
      const { token } = (data ?? {}) as { token?: string }
      return token === undefined || keyIdIn(Buffer.from(token, 'base64').toString()) !== kid
    })
  await kubernetes(async (client) => {
    for (const { metadata } of await stale(client)) {
      const patch = { type: 'application/merge-patch+json', body: { data: { token: null } } } as const
      await client.patch(core.secret, metadata.name ?? '', metadata.namespace, patch)
    }
  })
  await within(io, proofTimeout, 'tokens in Secrets are made again', async () => {
    const [left] = await kubernetes(stale)
    if (left) throw new Error(`Secret ${left.metadata.namespace}/${left.metadata.name} has none of the new key yet`)
  })
}

async function proveTokens({ io, kubernetes }: Run, key: string, before: string | undefined): Promise<void> {
  await within(io, proofTimeout, 'only tokens of the new key are accepted', async () => {
    const token = await kubernetes(newToken)
    if (keyIdIn(token) !== keyIdOf(key) || !(await kubernetes((client) => isAccepted(client, token))))
      throw new Error('a new one is refused')
    if (before && (await kubernetes((client) => isAccepted(client, before)))) throw new Error('one of the old key is still accepted')
  })
}

/** Replaces the key that encrypts secrets in etcd, and has every Secret encrypted again. */
export const rotateSecretboxKey = (io: Io, cluster: Cluster, options: KeyOptions): Promise<void> =>
  atEndpoints(io, cluster, (own) => secretboxKeyIn(io, own, options))

async function secretboxKeyIn(io: Io, cluster: Cluster, options: KeyOptions): Promise<void> {
  const run = await prepare(io, cluster, options)
  const old = run.config.v1alpha1?.cluster?.secretboxEncryptionSecret
  if (!old) throw new UsageError('the cluster has no cluster.secretboxEncryptionSecret: its secrets are not encrypted with a secretbox')
  run.state.secretbox ??= { old, next: randomBytes(32).toString('base64') }
  const keys = run.state.secretbox
  const done = await carryOut(run, 'key of the secretbox', secretboxRounds, {
    stageOf: (config) => secretboxStage(config, keys),
    advance: (config, stage) => advanceSecretbox(config, keys, stage),
    async prove({ stage }) {
      if (stage !== 2) return
      const count = await run.kubernetes(encryptAgain)
      run.report(`key of the secretbox: ${count} Secrets are encrypted with the new key`)
    },
  })
  if (!done) return
  run.state.secretbox = undefined
  await writeState(run.folder, run.state)
}

const pageSize = 500

/** Writes every Secret as it is: the API server encrypts one that has another key again. Returns how many there are. */
async function encryptAgain(kubernetes: KubeClient): Promise<number> {
  interface Page {
    readonly items: { readonly metadata: { readonly name: string; readonly namespace: string } }[] | null
    readonly metadata: { readonly continue?: string }
  }
  let next: string | undefined = ''
  let count = 0
  while (next !== undefined) {
    const page: Page = await kubernetes.request('GET', `${pathOf(core.secret)}?limit=${pageSize}&continue=${encodeURIComponent(next)}`)
    for (const { metadata } of page.items ?? []) {
      await rewrite(kubernetes, metadata.name, metadata.namespace)
      count++
    }
    next = page.metadata.continue || undefined
  }
  return count
}

/** Writes one Secret as it is; a change in between is read and written again, one that is gone needs nothing. */
async function rewrite(kubernetes: KubeClient, name: string, namespace: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const secret = await kubernetes.get(core.secret, name, namespace)
      await kubernetes.request('PUT', pathOf(core.secret, namespace, name), { body: JSON.stringify(secret) })
      return
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return
      if (!(error instanceof KubeError && error.status === 409) || attempt === 10) throw error
    }
  }
}
