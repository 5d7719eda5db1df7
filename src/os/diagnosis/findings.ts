/** Causes that several resources reveal together: settings that do not start, two members of one name, certificates of an authority no longer accepted. */
import type { Store } from '../../cosi/store.ts'
import { parseCertificate, signedBy } from '../../pki/certificate.ts'
import type { Name } from '../../wire/x509/name.ts'
import { Affiliate } from '../cluster/resources/affiliate.ts'
import { Identity } from '../cluster/resources/identity.ts'
import { type ConfigHistory, lastChangeOf } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { EtcdRepair } from '../etcd/resources/etcd-repair.ts'
import { EtcdUpkeep } from '../etcd/resources/etcd-upkeep.ts'
import { failureLimit, kubeletClientCertificate, pemOf } from '../k8s/public.ts'
import { ComponentFallback, ComponentStatus, ComponentTrial } from '../k8s/resources/component.ts'
import type { Kernel } from '../kernel.ts'
import { BootPhase } from '../lifecycle/resources/boot-phase.ts'
import { HostnameStatus } from '../network/resources/hostname.ts'
import { Diagnostic } from '../runtime/resources/diagnostic.ts'
import { ApiCertificate } from '../secrets/resources/api-certificate.ts'
import { KubeletSecret } from '../secrets/resources/kubelet-secret.ts'
import { type Cause, subjectOf } from './cause.ts'
import { troubledDeliveries } from './deliveries.ts'
import { troubledVolumes } from './volumes.ts'

/** A cause before its place among the others is known. */
export type Finding = Omit<Cause, 'depth' | 'because'>

/** The state that is examined. */
export interface Evidence {
  readonly store: Store
  readonly files: Pick<Kernel['files'], 'readTextIfThere'>
  /** Configurations that were applied, oldest first. */
  readonly history: Pick<ConfigHistory, 'list'>
}

/** All findings of this machine, those that need an operator's decision first. */
export function findings(evidence: Evidence): Finding[] {
  const { store } = evidence
  return [
    ...rejectedSettings(evidence),
    ...sameHostname(store),
    ...foreignCertificates(evidence),
    ...settingsOnTrial(evidence),
    ...failedPhases(store),
    ...troubledVolumes(store),
    ...etcdWasFull(store),
    ...etcdWasRepaired(store),
    ...troubledDeliveries(store),
    ...diagnostics(store),
  ]
}

/** Components that run with their previous settings because the new ones did not start. */
function rejectedSettings(evidence: Evidence): Finding[] {
  const { store } = evidence
  return store.list(ComponentFallback).map(({ metadata: { id }, spec: { rejected, changed, error, since } }) => {
    const present = store.get(ComponentStatus, id)?.spec
    const failsAgain = present && present.settings !== rejected && !present.ready && present.failures >= failureLimit
    const paths = changed.join(', ')
    const sentence = failsAgain
      ? `it starts neither with its new settings (${paths}) nor with the previous ones, so the cause may lie elsewhere`
      : `it does not start with its new settings (${paths}), so it runs with the previous ones`
    const words = (failsAgain && present.error) || error
    return {
      kind: 'failing',
      about: { kind: 'component', name: id },
      subject: subjectOf('component', id),
      sentence: `${sentence}; ${wayBack(changed, evidence)}`,
      ...(words && { error: words, output: words }),
      since: new Date(since),
      urgent: true,
    }
  })
}

/** Components that were just given other settings, and have not run with them for long enough. */
function settingsOnTrial(evidence: Evidence): Finding[] {
  return evidence.store
    .list(ComponentTrial)
    .filter(({ spec }) => spec.started && !spec.ready)
    .map(({ metadata: { id, created }, spec: { changed, error } }) => ({
      kind: 'unhealthy',
      about: { kind: 'component', name: id },
      subject: subjectOf('component', id),
      sentence:
        `it is being started with new settings (${changed.join(', ')}), and the previous ones return if it does not run; ` +
        wayBack(changed, evidence),
      ...(error && { error, output: error }),
      since: created,
      urgent: true,
    }))
}

/** The configuration that brought the changed settings, and the one to go back to. */
const wayBack = (changed: readonly string[], evidence: Evidence): string =>
  changedBy(changed, 'them', evidence) ?? 'correct them and apply the configuration again'

function changedBy(paths: readonly string[], what: string, evidence: Evidence): string | undefined {
  const change = lastChange(paths, evidence)
  return change && `${change.by} changed ${what}: correct ${what}, or ${change.back}`
}

/** The configuration that last changed one of these settings, and how to go back; undefined when none in the history did. */
function lastChange(paths: readonly string[], { store, history }: Evidence): { by: string; back: string; time: Date } | undefined {
  const inForce = store.get(MachineConfig, 'v1alpha1')?.spec
  const found = paths.map((path) => lastChangeOf(path, history, inForce)).find((change) => change !== undefined)
  if (!found) return undefined
  const who = found.by.actor || found.by.peer
  return {
    by: `configuration ${found.id}${who ? ` by ${who}` : ''} at ${found.time}`,
    back: `go back with "talosctl config-history restore ${found.previous}"`,
    time: new Date(found.time),
  }
}

/** The sections of services that take their settings only at their next start. */
const sections: Readonly<Record<string, string>> = { etcd: 'cluster.etcd' }

/** The configuration that last changed the settings of a service that does not start, unless it was healthy after that. */
export function settingsOf(service: string, wellUntil: Date | undefined, evidence: Evidence): string | undefined {
  const section = sections[service]
  const change = section && lastChange([section], evidence)
  if (!change || (wellUntil && change.time < wellUntil)) return undefined
  return `its settings (${section}) were last changed by ${change.by}: correct them, or ${change.back}`
}

/** Another member with this machine's host name: each mistakes the other's node, certificates and etcd membership for its own. */
function sameHostname(store: Store): Finding[] {
  const own = store.get(HostnameStatus, 'hostname')?.spec.hostname
  const { nodeId } = store.list(Identity)[0]?.spec ?? {}
  if (!own || !nodeId) return []
  const twins = store.list(Affiliate, { namespace: 'cluster' }).filter(({ spec }) => spec.hostname === own && spec.nodeId !== nodeId)
  return twins.map(({ spec }) => ({
    kind: 'outside',
    about: { kind: 'other' },
    subject: `host name ${own}`,
    sentence: `another ${spec.machineType} member (${spec.addresses.join(', ') || spec.nodeId}) has the same host name: give one of them another (HostnameConfig, or machine.network.hostname)`,
    urgent: true,
  }))
}

/** Certificates in use that were signed by no accepted authority: peers refuse them as unauthorized. */
function foreignCertificates(evidence: Evidence): Finding[] {
  const { store, files } = evidence
  const api = store.get(ApiCertificate, 'api')?.spec
  const kubelet = store.get(KubeletSecret, 'kubelet')?.spec
  return [
    ...foreignCertificate(
      'the machine API',
      pemOf(api?.server?.crt),
      (api?.acceptedCAs ?? []).map(({ crt }) => pemOf(crt)),
      ['machine.ca', 'machine.acceptedCAs'],
      evidence,
    ),
    ...foreignCertificate(
      'the kubelet',
      kubeletClientCertificate(files) ?? '',
      (kubelet?.acceptedCAs ?? []).map(({ crt }) => pemOf(crt)),
      ['cluster.ca', 'cluster.acceptedCAs'],
      evidence,
    ),
  ]
}

/** A certificate signed by none of the authorities; `keys` is where they are in the configuration. */
export function foreignCertificate(
  whose: string,
  pem: string,
  authorities: readonly string[],
  keys: readonly string[],
  evidence: Evidence,
): Finding[] {
  if (!pem || authorities.length === 0) return []
  try {
    if (signedBy(pem, authorities.join('\n'))) return []
    const { issuer } = parseCertificate(pem)
    const change = changedBy(keys, 'that', evidence)
    return [
      {
        kind: 'failing',
        about: { kind: 'other' },
        subject: `certificate of ${whose}`,
        sentence: `it was signed by ${named(issuer)}, which is not among the accepted authorities (${keys.join(', ')}): it is refused until it is issued again${change ? `; ${change}` : ''}`,
        urgent: true,
      },
    ]
  } catch {
    return [{ kind: 'failing', about: { kind: 'other' }, subject: `certificate of ${whose}`, sentence: 'it cannot be read', urgent: true }]
  }
}

function named({ commonName = '', organizations = [] }: Name): string {
  const name = [organizations.map((one) => `O=${one}`).join(','), commonName && `CN=${commonName}`].filter(Boolean).join(',')
  return name ? `another authority "${name}"` : 'another authority'
}

/** Failed steps of this boot, such as files of the configuration that could not be written. */
function failedPhases(store: Store): Finding[] {
  return store
    .list(BootPhase)
    .filter(({ spec }) => spec.state === 'failed')
    .map(({ metadata, spec: { sequence, phase, error, code } }) => ({
      kind: 'failing',
      about: { kind: 'other' },
      subject: `${sequence} phase ${phase}`,
      sentence: 'it failed at this start',
      ...(error && { error }),
      ...(code && { code }),
      since: metadata.updated,
    }))
}

/** An etcd that had reached its quota a short while ago: it will again, unless someone looks at what writes so much. */
function etcdWasFull(store: Store): Finding[] {
  const { full, members = [] } = store.get(EtcdUpkeep, 'etcd')?.spec ?? {}
  if (!full?.recovered) return []
  const { inUse = 0, quota = 0 } = members[0] ?? {}
  const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MiB`
  return [
    {
      kind: 'unhealthy',
      about: { kind: 'resource', type: EtcdUpkeep.type, id: 'etcd' },
      subject: 'quota of etcd',
      sentence:
        `etcd had reached its quota and refused writes until it was compacted and defragmented; now ${megabytes(inUse)} of ` +
        `${megabytes(quota)} are in use: find what writes so much, or raise "quota-backend-bytes" in cluster.etcd.extraArgs`,
      since: new Date(full.time),
    },
  ]
}

/** An etcd member whose data was replaced a short while ago: its disk may be failing. While it joins, a diagnostic reports it. */
function etcdWasRepaired(store: Store): Finding[] {
  const repair = store.get(EtcdRepair, 'etcd')?.spec
  if (repair?.state !== 'voting') return []
  return [
    {
      kind: 'unhealthy',
      about: { kind: 'resource', type: EtcdRepair.type, id: 'etcd' },
      subject: 'data of etcd',
      sentence:
        `etcd could not use its data (${repair.reason}), so the member joined the others again and has theirs; the old data is in ` +
        `${repair.kept} for a day: look at the disk`,
      since: new Date(repair.time),
    },
  ]
}

/** Diagnostics that controllers published; those of component settings are explained at the component. */
function diagnostics(store: Store): Finding[] {
  const explained = new Set(store.list(ComponentFallback).map(({ metadata }) => `${metadata.id}-settings`))
  return store
    .list(Diagnostic)
    .filter(({ metadata }) => !explained.has(metadata.id))
    .map(({ metadata, spec: { message, details } }) => ({
      kind: 'unhealthy',
      about: { kind: 'resource', type: Diagnostic.type, id: metadata.id },
      subject: `diagnostic ${metadata.id}`,
      sentence: message,
      ...(details.length > 0 && { error: details.join('\n') }),
      since: metadata.created,
    }))
}
