/**
 * Changes that a configured machine refuses although the new configuration is valid in itself: another machine type, another
 * cluster, secrets that its cluster does not accept. One line each.
 */
import { createPublicKey } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Store } from '../../../cosi/store.ts'
import { Disk } from '../../block/resources/disk.ts'
import { Identity } from '../../cluster/resources/identity.ts'
import { Member } from '../../cluster/resources/member.ts'
import { EtcdMember } from '../../etcd/resources/etcd-member.ts'
import { HostnameConfig } from '../../network/documents/hostname.ts'
import { KubernetesKeysConfig } from '../../secrets/documents/kubernetes-keys.ts'
import { podSubnets, serviceSubnets } from '../cluster-networks.ts'
import type { ConfigContainer } from '../container.ts'
import { machineType, type V1Alpha1Document } from '../documents/v1alpha1.ts'
import { encryptionRefusals } from './encryption-refusals.ts'

/** Why a configuration is refused. */
export interface Refusal {
  readonly message: string
  /** An operator may override it with --force. */
  readonly forcible: boolean
}

/** What the refusals check beside the two configurations. */
export interface Circumstances {
  readonly store: Pick<Store, 'get' | 'list'>
  readonly mode: 'container' | 'metal'
  /** Why a disk selector matches no disk of this machine. */
  readonly refuseSelector?: ((selector: DiskSelector) => string | undefined) | undefined
}

/** `machine.install.diskSelector`. */
export type DiskSelector = NonNullable<NonNullable<NonNullable<V1Alpha1Document['machine']>['install']>['diskSelector']>

/** Everything against replacing the configuration in force with this one. */
export function refusalsOf(inForce: ConfigContainer, next: ConfigContainer, around: Circumstances): Refusal[] {
  const [old, now] = [inForce.v1alpha1, next.v1alpha1]
  if (!old) return []
  if (!now) return [{ message: "the applied machine configuration doesn't contain v1alpha1 config", forcible: false }]
  const otherType = typeRefusals(old, now, around)
  if (otherType.length > 0) return otherType
  return [
    ...clusterRefusals(old, now).filter(({ path }) => !replacedInSteps(path, inForce, next)),
    ...authorityRefusals(old, now),
    ...networkRefusals(old, now),
    ...hostnameRefusals(inForce, next, around),
    ...diskRefusals(old, now, around),
    ...encryptionRefusals(inForce, next, around.store),
  ]
}

const forcible = (message: string): Refusal => ({ message, forcible: true })

function typeRefusals(old: V1Alpha1Document, now: V1Alpha1Document, { store }: Circumstances): Refusal[] {
  const role = (document: V1Alpha1Document) => (machineType(document) === 'worker' ? 'worker' : 'controlplane')
  const [was, is] = [role(old), role(now)]
  if (was === is) return []
  if (was === 'controlplane' && store.list(EtcdMember).length > 0)
    return [
      {
        message: `machine.type: this control plane is a member of etcd and cannot become a ${is}: "talosctl reset" takes it out of the cluster first`,
        forcible: false,
      },
    ]
  return [forcible(`machine.type: this machine is a ${was} and would become a ${is}: reset it and configure it again`)]
}

/** Settings that identify the cluster. Setting one for the first time is no change of cluster. */
function clusterRefusals(old: V1Alpha1Document, now: V1Alpha1Document): (Refusal & { path: string })[] {
  const of = ({ machine, cluster }: V1Alpha1Document): [path: string, value: string | undefined, effect: string][] => [
    ['cluster.id', cluster?.id, 'the machine would belong to another cluster'],
    ['cluster.secret', cluster?.secret, 'the other members would not find the machine any more'],
    ['machine.token', machine?.token, 'certificates of the machine API could not be renewed with the other one'],
    ['cluster.token', cluster?.token, 'nodes could not join with the other one'],
    ['cluster.secretboxEncryptionSecret', cluster?.secretboxEncryptionSecret, 'the secrets in etcd could not be read any more'],
    ['cluster.aescbcEncryptionSecret', cluster?.aescbcEncryptionSecret, 'the secrets in etcd could not be read any more'],
    ['cluster.serviceAccount.key', cluster?.serviceAccount?.key, 'the tokens of all service accounts would be refused'],
  ]
  const values = of(now)
  return of(old).flatMap(([path, value, effect], index) =>
    value !== undefined && value !== values[index]?.[1] ? [{ ...forcible(`${path}: not the one in force: ${effect}`), path }] : [],
  )
}

/** Whether a key is replaced as in a rotation: what the old one signed or encrypted is accepted, or there is nothing of it left. */
function replacedInSteps(path: string, inForce: ConfigContainer, next: ConfigContainer): boolean {
  const [before, after] = [inForce, next].map((config) => config.find(KubernetesKeysConfig) ?? {})
  if (path === 'cluster.serviceAccount.key') {
    const old = publicKeyOf(inForce.v1alpha1?.cluster?.serviceAccount?.key)
    return old !== undefined && (after?.acceptedServiceAccountKeys ?? []).some((key) => publicKeyOf(key) === old)
  }
  if (path !== 'cluster.secretboxEncryptionSecret') return false
  const { secretboxEncryptionSecret: old } = inForce.v1alpha1?.cluster ?? {}
  const { secretboxEncryptionSecret: now } = next.v1alpha1?.cluster ?? {}
  if (old === undefined || now === undefined) return false
  return before?.secretboxKeys?.[0] === now || (after?.secretboxKeys ?? []).includes(old)
}

/** The public key of a key in a configuration, as PEM. */
function publicKeyOf(key: string | undefined): string | undefined {
  try {
    return createPublicKey(Buffer.from(key ?? '', 'base64'))
      .export({ format: 'pem', type: 'spki' })
      .toString()
  } catch {
    return undefined
  }
}

type Pair = { crt?: string | undefined; key?: string | undefined } | undefined

/** An authority may be replaced while the previous one is still accepted, as in a rotation. */
function authorityRefusals(old: V1Alpha1Document, now: V1Alpha1Document): Refusal[] {
  const carriedOver = (path: string, was: Pair, is: Pair, accepted: readonly Pair[] | undefined): Refusal[] => {
    if (!was?.crt || is?.crt === was.crt || accepted?.some((each) => each?.crt === was.crt)) return []
    const list = path.replace(/ca$/, 'acceptedCAs')
    return [forcible(`${path}: not the authority in force, which is not in "${list}" either: add it there while the authority is replaced`)]
  }
  const etcd = [old.cluster?.etcd?.ca?.crt, now.cluster?.etcd?.ca?.crt]
  const strange = etcd[0] !== undefined && etcd[0] !== etcd[1]
  return [
    ...carriedOver('machine.ca', old.machine?.ca, now.machine?.ca, now.machine?.acceptedCAs),
    ...carriedOver('cluster.ca', old.cluster?.ca, now.cluster?.ca, now.cluster?.acceptedCAs),
    ...(strange ? [forcible('cluster.etcd.ca: not the authority in force: the members of etcd would refuse each other')] : []),
  ]
}

const networks = { podSubnets: { what: 'pods', of: podSubnets }, serviceSubnets: { what: 'services', of: serviceSubnets } } as const

/** An address family may be added; the networks in use must stay. */
function networkRefusals(old: V1Alpha1Document, now: V1Alpha1Document): Refusal[] {
  return (['podSubnets', 'serviceSubnets'] as const).flatMap((key) => {
    const [was, is] = [networks[key].of(old.cluster), networks[key].of(now.cluster)]
    const gone = was.filter((subnet) => !is.includes(subnet))
    if (gone.length === 0 && was[0] === is[0]) return []
    return [
      forcible(
        `cluster.network.${key}: the running cluster has its ${networks[key].what} in ${was.join(', ')}, which cannot become ${is.join(', ')}`,
      ),
    ]
  })
}

function hostnameRefusals(inForce: ConfigContainer, next: ConfigContainer, { store }: Circumstances): Refusal[] {
  const of = (config: ConfigContainer) => config.find(HostnameConfig)?.hostname || config.v1alpha1?.machine?.network?.hostname
  const hostname = of(next)?.toLowerCase()
  if (!hostname || hostname === of(inForce)?.toLowerCase()) return []
  const own = store.get(Identity, 'local')?.spec.nodeId
  const name = (text: string) => text.toLowerCase().split('.')[0]
  const other = store.list(Member).find(({ spec }) => spec.nodeId !== own && name(spec.hostname) === name(hostname))
  if (!other) return []
  return [forcible(`hostname "${hostname}": the member with the addresses ${other.spec.addresses.join(', ')} has that name`)]
}

function diskRefusals(old: V1Alpha1Document, now: V1Alpha1Document, { store, mode, refuseSelector }: Circumstances): Refusal[] {
  if (mode === 'container') return []
  const { disk, diskSelector } = now.machine?.install ?? {}
  // Where there is a selector, the disk is not checked.
  if (diskSelector && Object.values(diskSelector).some((value) => value !== undefined)) {
    if (isDeepStrictEqual(diskSelector, old.machine?.install?.diskSelector)) return []
    const why = refuseSelector?.(diskSelector)
    return why === undefined ? [] : [forcible(why)]
  }
  if (!disk || disk === old.machine?.install?.disk) return []
  const disks = store.list(Disk)
  if (disks.length === 0 || disks.some(({ spec }) => spec.dev_path === disk || spec.symlinks?.includes(disk))) return []
  const known = disks.filter(({ spec }) => !spec.readonly && !spec.cdrom).map(({ spec }) => spec.dev_path)
  return [forcible(`machine.install.disk: there is no ${disk} on this machine, only ${known.join(', ')}`)]
}
