/** The state of the system: the machine, its trials, its certificates, etcd's members, and what is sent to other machines. */
import * as v from 'valibot'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Store } from '../../../cosi/store.ts'
import { fromBase64, parseCertificate } from '../../../pki/certificate.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { metaTags } from '../../block/public.ts'
import { EtcdUpkeep } from '../../etcd/resources/etcd-upkeep.ts'
import { ComponentTrial } from '../../k8s/resources/component.ts'
import { KubeSpanPeerStatus } from '../../kubespan/resources/kube-span-peer.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { MachineStatus } from '../../runtime/resources/machine-status.ts'
import { MetaKey } from '../../runtime/resources/meta.ts'
import { ApiCertificate } from '../../secrets/resources/api-certificate.ts'
import { EtcdRootSecret } from '../../secrets/resources/etcd-root-secret.ts'
import { EtcdSecret } from '../../secrets/resources/etcd-secret.ts'
import { KubernetesDynamicCert } from '../../secrets/resources/kubernetes-dynamic-cert.ts'
import { KubernetesRootSecret } from '../../secrets/resources/kubernetes-root-secret.ts'
import { OSRootSecret } from '../../secrets/resources/os-root-secret.ts'
import { TrustdCertificate } from '../../secrets/resources/trustd-certificate.ts'
import { AdjtimeStatus } from '../../time/resources/adjtime-status.ts'
import { DeliveryStatus } from '../resources/delivery-status.ts'
import { gauge, type Metric, type Sample } from './exposition.ts'

type Reader = Pick<Store, 'get' | 'list'>

/** The stage of the machine, and its clock. */
export function machineMetrics(store: Reader): Metric[] {
  const status = store.get(MachineStatus, 'machine')?.spec
  const clock = store.get(AdjtimeStatus, 'node')?.spec
  return [
    {
      name: 'ichor_machine_stage',
      help: 'The stage of the machine: 1 for the one it is in.',
      type: 'gauge',
      samples: status ? [[{ stage: status.stage }, 1]] : [],
    },
    gauge('ichor_machine_ready', 'Whether everything that a running machine needs is there.', status && (status.status.ready ? 1 : 0)),
    gauge('ichor_diagnostics', 'What the machine found to be wrong with itself.', store.list(Diagnostic).length),
    gauge('node_timex_offset_seconds', 'How far the clock is from its reference.', clock && milliseconds(clock.offset) / 1000),
    gauge('node_timex_maxerror_seconds', 'How far the clock may be off.', clock && milliseconds(clock.maxError) / 1000),
    gauge('node_timex_sync_status', 'Whether the clock is in step with a time server.', clock && (clock.syncStatus ? 1 : 0)),
  ]
}

const failedReleases = v.array(v.object({ version: v.string() }))

/** Trials of releases, configurations and components, and releases that failed. `configuration` is the kind of a trial of that. */
export function trialMetrics(store: Reader, configuration: string | undefined): Metric[] {
  const meta = (tag: number) => store.get(MetaKey, `0x${tag.toString(16).padStart(2, '0')}`)?.spec.value
  const versions = new Set(versionsIn(meta(metaTags.failedReleases)))
  return [
    gauge(
      'ichor_release_on_trial',
      'Whether a release runs, or will, that is rolled back unless it proves healthy.',
      meta(metaTags.upgradeFallback) ? 1 : 0,
    ),
    {
      name: 'ichor_release_failed',
      help: 'Releases that were rolled back on this machine.',
      type: 'gauge',
      samples: [...versions].map((version): Sample => [{ version }, 1]),
    },
    gauge(
      'ichor_configuration_on_trial',
      'Whether a configuration is in force that is reverted unless it is confirmed.',
      configuration === undefined ? 0 : 1,
    ),
    {
      name: 'ichor_component_on_trial',
      help: 'Components of Kubernetes and etcd with settings that are reverted unless they work.',
      type: 'gauge',
      samples: store.list(ComponentTrial).map(({ metadata }): Sample => [{ component: metadata.id }, 1]),
    },
  ]
}

function versionsIn(text: string | undefined): string[] {
  try {
    const found = v.safeParse(failedReleases, JSON.parse(text ?? '[]'))
    return found.success ? found.output.map(({ version }) => version) : []
  } catch {
    return []
  }
}

/** When certificates expire, in seconds since 1970. */
export function certificateMetrics(store: Reader): Metric[] {
  const api = store.get(ApiCertificate, 'api')?.spec
  const etcd = store.get(EtcdSecret, 'etcd')?.spec
  const kubernetes = store.get(KubernetesDynamicCert, 'k8s-certs')?.spec
  const authorities = store.get(KubernetesRootSecret, 'k8s')?.spec
  const all: Readonly<Record<string, { crt: string } | undefined>> = {
    'api-server': api?.server,
    'api-client': api?.client,
    trustd: store.get(TrustdCertificate, 'trustd')?.spec.server,
    'etcd-member': etcd?.etcd,
    'etcd-peer': etcd?.etcdPeer,
    'etcd-admin': etcd?.etcdAdmin,
    'kube-apiserver': kubernetes?.apiServer,
    'kube-apiserver-kubelet-client': kubernetes?.apiServerKubeletClient,
    'front-proxy-client': kubernetes?.frontProxy,
    'os-ca': store.get(OSRootSecret, 'os')?.spec.issuingCA,
    'etcd-ca': store.get(EtcdRootSecret, 'etcd')?.spec.etcdCA,
    'kubernetes-ca': authorities?.issuingCA,
    'aggregator-ca': authorities?.aggregatorCA,
  }
  return [
    {
      name: 'ichor_certificate_expiration_timestamp_seconds',
      help: 'When a certificate expires, in seconds since 1970; the system renews its own at half of their life, authorities are rotated by the operator.',
      type: 'gauge',
      samples: Object.entries(all).flatMap(([certificate, pair]): Sample[] => {
        const expires = expiry(pair?.crt)
        return expires === undefined ? [] : [[{ certificate }, expires]]
      }),
    },
  ]
}

/** A certificate of the configuration that cannot be parsed has no expiry; what uses it reports that. */
function expiry(crt: string | undefined): number | undefined {
  if (!crt) return undefined
  try {
    return parseCertificate(fromBase64(crt)).notAfter.getTime() / 1000
  } catch {
    return undefined
  }
}

/** etcd's members as this control plane sees them. */
export function etcdMetrics(store: Reader): Metric[] {
  const upkeep = store.get(EtcdUpkeep, 'etcd')?.spec
  const members = upkeep?.members ?? []
  type Member = SpecOf<typeof EtcdUpkeep>['members'][number]
  const each = (name: string, help: string, value: (member: Member) => number): Metric => ({
    name: `ichor_etcd_member_${name}`,
    help,
    type: 'gauge',
    samples: members.map((member): Sample => [{ member: member.name }, value(member)]),
  })
  return [
    gauge(
      'ichor_etcd_writable',
      'Whether etcd accepts writes: no member has reached its quota.',
      upkeep && (upkeep.state === 'writable' ? 1 : 0),
    ),
    gauge('ichor_etcd_members', 'Members of etcd.', upkeep && members.length),
    each('size_bytes', 'Bytes of the file of a member.', ({ size }) => size),
    each('in_use_bytes', 'Bytes of the file of a member that hold data.', ({ inUse }) => inUse),
    each('quota_bytes', 'Bytes at which a member refuses writes; 0 is no limit.', ({ quota }) => quota),
  ]
}

/** Logs and events that are sent to other machines. */
export function deliveryMetrics(store: Reader): Metric[] {
  const all = store.list(DeliveryStatus).map(({ spec }) => spec)
  type Delivery = (typeof all)[number]
  const each = (name: string, help: string, type: Metric['type'], value: (one: Delivery) => number): Metric => ({
    name: `ichor_delivery_${name}`,
    help,
    type,
    samples: all.map((one): Sample => [{ source: one.source, destination: one.destination }, value(one)]),
  })
  return [
    each('connected', 'Whether a receiver of logs or events is connected.', 'gauge', ({ connected }) => (connected ? 1 : 0)),
    each('sent_total', 'Messages that a receiver has.', 'counter', ({ sent }) => sent),
    each('behind', 'What a receiver does not have yet: bytes of logs, else records.', 'gauge', ({ behind }) => behind),
    each('dropped_total', 'Records and events that were overwritten before a receiver had them.', 'counter', ({ dropped }) => dropped),
    each(
      'dropped_bytes_total',
      'Bytes of logs that were overwritten before a receiver had them.',
      'counter',
      ({ droppedBytes }) => droppedBytes,
    ),
  ]
}

/** Peers of the mesh by state. */
export function meshMetrics(store: Reader): Metric[] {
  const peers = store.list(KubeSpanPeerStatus).map(({ spec }) => spec.state)
  const states = peers.length === 0 ? [] : (['up', 'down', 'unknown'] as const)
  return [
    {
      name: 'ichor_kubespan_peers',
      help: 'Peers of the mesh by the state of their connection.',
      type: 'gauge',
      samples: states.map((state): Sample => [{ state }, peers.filter((one) => one === state).length]),
    },
  ]
}
