/**
 * Nothing is accepted that is not done: every key of every document changes some resource that the controllers compute, or
 * acts outside them for a reason given here, or is refused.
 */
import { expect, test } from 'bun:test'
import { parseAllDocuments } from 'yaml'
import type { Controller, Round } from '../../../src/cosi/controller.ts'
import { silent } from '../../../src/cosi/log.ts'
import { onlyComputes } from '../../../src/cosi/rehearse.ts'
import type { Resource } from '../../../src/cosi/resource.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { ConfigError } from '../../../src/document/config-error.ts'
import { unwrap } from '../../../src/document/shape.ts'
import { insteadOf } from '../../../src/document/unsupported.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { documentKinds } from '../../../src/os/config/kinds.ts'
import { configOf } from '../../../src/os/config/parse.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { ImageCacheConfig } from '../../../src/os/cri/resources/image-cache-config.ts'
import { StaticPodServerStatus } from '../../../src/os/k8s/resources/static-pod.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { LinkStatus } from '../../../src/os/network/resources/link.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { MetaLoad } from '../../../src/os/runtime/resources/meta.ts'
import { areas } from '../../../src/programs/init/areas.ts'
import { linkStatus } from '../network/link-status.ts'

/** A machine that has every property and method, and does nothing. */
const nothing: unknown = new Proxy(() => {}, {
  get: (_, key) => (key === 'mode' ? 'metal' : key === Symbol.toPrimitive ? () => '' : nothing),
  apply: () => nothing,
})

const harmless = (controller: Controller): Controller => ({
  ...controller,
  reconcile: (round: Round & Record<string, unknown>) => controller.reconcile({ ...round, wakeIn: () => {}, background: () => {} }),
})

const link = (index: number) =>
  linkStatus(index + 1, {
    hardwareAddr: `02:00:00:00:00:0${index}`,
    permanentAddr: `02:00:00:00:01:0${index}`,
    kind: index === 6 ? 'dummy' : '',
    busPath: `0000:00:0${index}.0`,
    pciID: `1af4:100${index}`,
    driver: `driver${index}`,
  })

/**
 * A store as a running machine has it, and all controllers that only compute; gives all that they make of a configuration,
 * and nothing for one that is refused.
 */
function machine() {
  const store = new Store()
  for (let index = 0; index < 7; index++) store.put(LinkStatus, `eth${index}`, link(index))
  store.put(StaticPodServerStatus, 'static-pod-server-status', { url: 'http://127.0.0.1:1' })
  store.put(ImageCacheConfig, 'image-cache', { status: 'disabled', copyStatus: 'skipped', roots: [] })
  store.put(Identity, 'local', { nodeId: 'nodeid' })
  store.put(MetaLoad, 'meta-loaded', { done: true })
  store.put(HostnameStatus, 'hostname', { hostname: 'host', domainname: 'example' })
  for (const id of ['default', 'routed', 'current', 'accumulative'])
    store.put(NodeAddress, id, { addresses: ['10.1.0.2/24'], sortAlgorithm: 'v1' })
  const runtime = new Runtime(store, { log: silent })
  const controllers = areas.flatMap((area) => area.parts?.(nothing as never).controllers ?? []).filter(onlyComputes)
  runtime.register(...controllers.map(harmless))
  runtime.start()
  const texts = new WeakMap<Resource, string>()
  const textOf = (resource: Resource): string => {
    const { metadata, spec } = resource
    const text = texts.get(resource) ?? JSON.stringify([metadata.type, metadata.namespace, metadata.id, spec])
    texts.set(resource, text)
    return text
  }
  return async (documents: readonly object[]): Promise<string | undefined> => {
    const before = store.get(MachineConfig, 'v1alpha1')
    const resource = store.put(MachineConfig, 'v1alpha1', documents.map((document) => JSON.stringify(document)).join('\n---\n'))
    try {
      configOf(resource)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      // Taken back before any controller has begun its round.
      if (before) store.put(MachineConfig, 'v1alpha1', before.spec)
      return undefined
    }
    await runtime.settled()
    const made = store.all().filter(({ metadata }) => metadata.owner !== '')
    return made.map(textOf).sort().join('\n')
  }
}

type Tree = { [key: string]: unknown }

const read = async (name: string) =>
  parseAllDocuments(await Bun.file(`${import.meta.dir}/acting/${name}.yaml`).text()).map((document) => document.toJS() as Tree)

const [legacy = {}] = await read('v1alpha1')
const others = await read('documents')

/** Enough of a configuration for others to matter. */
const base = {
  machine: { type: 'controlplane', features: { stableHostname: true }, network: { kubespan: { enabled: true } } },
  cluster: { id: 'i', secret: 's', controlPlane: { endpoint: 'https://cp.example:6443' }, discovery: { enabled: true } },
}

/** The v1alpha1 document in parts, each with no more around it than it needs. */
function* partsOfLegacy(): Generator<Tree> {
  const { machine, cluster, ...rest } = legacy as { machine: Tree; cluster: Tree }
  yield { ...rest, ...base }
  const { interfaces, ...network } = machine.network as { interfaces: object[] }
  for (const each of interfaces) yield { ...base, machine: { ...base.machine, network: { interfaces: [each] } } }
  for (const [key, value] of Object.entries({ ...machine, network })) yield { ...base, machine: { ...base.machine, [key]: value } }
  for (const [key, value] of Object.entries(cluster)) yield { ...base, cluster: { ...base.cluster, [key]: value } }
  const { advertisedSubnets: _, ...etcd } = cluster.etcd as Tree
  const { extraManifests, extraManifestHeaders } = cluster
  yield { ...base, cluster: { ...base.cluster, etcd, extraManifests, extraManifestHeaders } }
}

/** Every leaf of a declaration: `a.b[].c{}`; those that are refused are left out. */
function* leaves(schema: unknown, path = ''): Generator<string> {
  if (insteadOf(schema)) return
  const inner = unwrap(schema)
  if (inner.type === 'object')
    for (const [key, each] of Object.entries(inner.entries ?? {})) yield* leaves(each, path ? `${path}.${key}` : key)
  else if (inner.type === 'array') yield* leaves(inner.item, `${path}[]`)
  else if (inner.type === 'record' && unwrap(inner.value).type !== 'unknown') yield* leaves(inner.value, `${path}{}`)
  else yield path
}

/** Every place of a value where a leaf is, with what changes it: taken out, or another value. */
function* places(
  schema: unknown,
  value: unknown,
  path: string,
  change: (made: unknown) => Tree,
): Generator<{ leaf: string; changed: () => Tree[] }> {
  if (insteadOf(schema) || value === undefined) return
  const inner = unwrap(schema)
  if (inner.type === 'object' || (inner.type === 'record' && unwrap(inner.value).type !== 'unknown')) {
    for (const [key, each] of Object.entries(value as Tree)) {
      const next = inner.entries ? inner.entries[key] : inner.value
      const at = inner.entries ? (path ? `${path}.${key}` : key) : `${path}{}`
      const without = (made: unknown) => {
        const { [key]: _, ...rest } = value as Tree
        return change(made === undefined ? rest : { ...rest, [key]: made })
      }
      yield* places(next, each, at, without)
    }
  } else if (inner.type === 'array') {
    for (const [index, each] of (value as unknown[]).entries())
      yield* places(inner.item, each, `${path}[]`, (made) =>
        change((value as unknown[]).flatMap((old, at) => (at === index ? (made === undefined ? [] : [made]) : [old]))),
      )
  } else yield { leaf: path, changed: () => [change(undefined), change(another(value))] }
}

function another(value: unknown): unknown {
  if (typeof value === 'boolean') return !value
  if (typeof value === 'number') return value + 1
  if (typeof value !== 'string') return undefined
  return /^\d+$/.test(value) ? String(Number(value) + 1) : `${value}x`
}

const outcome = machine()

const present = { ...base, version: 'v1alpha1' }

/** Adds the leaves of a document that change what is computed, and all that it has. */
async function look(
  schema: unknown,
  scene: Tree,
  around: (changed: Tree) => object[],
  acts: Set<string>,
  seen: Set<string>,
): Promise<void> {
  const { apiVersion: _, kind: __, ...value } = scene
  const whole = await outcome(around(value))
  expect(whole).toBeDefined()
  for (const { leaf, changed } of places(schema, value, '', (made) => made as Tree)) {
    seen.add(leaf)
    for (const each of acts.has(leaf) ? [] : changed()) {
      const made = await outcome(around(each))
      if (made === undefined || made === whole) continue
      acts.add(leaf)
      break
    }
  }
}

/** Leaves that act elsewhere than in controllers that only compute, by how they begin. */
const elsewhere: Readonly<Record<string, string>> = {
  'v1alpha1 version': 'there is one only',
  'v1alpha1 debug': 'log lines on the console (runtime/verbosity.ts)',
  'v1alpha1 persist': 'false is refused',
  'v1alpha1 machine.disks[]': 'block.UserDiskConfigController, which reports a status too',
  'v1alpha1 machine.install.': 'read when the system is installed and upgraded (lifecycle/install)',
  'v1alpha1 machine.files[].': 'written at boot (lifecycle/start/user-files.ts)',
  'v1alpha1 machine.udev.rules[]': 'written at boot (lifecycle/start/udev-rules.ts)',
  'v1alpha1 machine.logging.destinations[].format': 'there is one only',
  'v1alpha1 machine.time.': 'time.SyncController, which sets the clock',
  'v1alpha1 machine.network.extraHostEntries[].': 'network.EtcFileController, which writes a file too',
  'v1alpha1 cluster.adminKubeconfig.certLifetime': 'read when a kubeconfig is requested (k8s/api/kubeconfig.ts)',
  'EtcdBackupConfig ': 'etcd.BackupController, which takes backups',
  'EtcdBackupStoreConfig ': 'read by the methods that receive backups (etcd/received/settings.ts)',
  'ExternalVolumeConfig filesystemType': 'there is one only',
  'ImageTrustedRootConfig ': 'security.ImageVerificationConfigController, while a rule needs it (tests/os/security)',
  'KmsgLogConfig name': 'identifies the destination',
  'NetworkRuleConfig name': 'identifies the rule',
  'TCPProbeConfig name': 'identifies the probe',
  'OOMConfig ': 'runtime.OOMController, which samples memory (tests/os/runtime/oom)',
  'StaticHostConfig ': 'network.EtcFileController, which writes a file too',
  'TimeSyncConfig enabled': 'time.SyncController, which sets the clock',
  'TimeSyncConfig bootTimeout': 'time.SyncController, which sets the clock',
  'TrustedRootsConfig ': 'secrets.TrustedRootsController, which reads the file of the image too',
  'RawVolumeConfig encryption.provider': 'there is one only',
  'SwapVolumeConfig encryption.provider': 'there is one only',
  'UserVolumeConfig encryption.provider': 'there is one only',
  'VolumeConfig encryption.provider': 'there is one only',
  'VolumeConfig mount.secure': 'read when EPHEMERAL is mounted at boot (lifecycle/boot.ts)',
}

const reasonOf = (leaf: string) => Object.keys(elsewhere).find((start) => leaf.startsWith(start))

const used = new Set<string>()

test.each([...documentKinds.values()].filter(({ notYet }) => !notYet).map((kind) => [kind.kind, kind] as const))(
  'every key of %s acts',
  async (name, { schema, apiVersion }) => {
    const legacy = apiVersion === ''
    const scenes = legacy ? partsOfLegacy() : others.filter(({ kind }) => kind === name)
    const around = (changed: Tree) => (legacy ? [changed] : [present, { apiVersion, kind: name, ...changed }])
    const [acts, seen] = [new Set<string>(), new Set<string>()]
    for (const scene of scenes) await look(schema, scene, around, acts, seen)
    const inert = [...leaves(schema)].map((leaf) => [leaf, `${name} ${leaf}`] as const).filter(([leaf]) => !acts.has(leaf))
    for (const [, leaf] of inert) used.add(reasonOf(leaf) ?? '')
    const unexplained = inert.filter(([, leaf]) => reasonOf(leaf) === undefined)
    expect(unexplained.map(([leaf, full]) => `${full}: ${seen.has(leaf) ? 'changes nothing' : 'is not in acting/*.yaml'}`)).toEqual([])
  },
)

test('no reason is given for a key that needs none', () => {
  expect(Object.keys(elsewhere).filter((start) => !used.has(start))).toEqual([])
})
