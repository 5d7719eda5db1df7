import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { day, newCA } from '../../../pki/certificate.ts'
import { isIp } from '../../../wire/ip.ts'
import { addressOnly, nthAddress, parsePrefix } from '../../../wire/prefix.ts'
import { declared, find, serviceSubnets } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { sharedAddresses } from '../../network/public.ts'
import { splitUrl } from '../../url.ts'
import { KubernetesKeysConfig } from '../documents/kubernetes-keys.ts'
import { SiblingKeysConfig } from '../documents/sibling-keys.ts'
import { encoded } from '../issued.ts'
import { machineApiNames } from '../machine-api-service.ts'
import { EtcdRootSecret } from '../resources/etcd-root-secret.ts'
import { KubeletSecret } from '../resources/kubelet-secret.ts'
import { KubernetesKeys } from '../resources/kubernetes-keys.ts'
import { KubernetesRootSecret } from '../resources/kubernetes-root-secret.ts'
import { MaintenanceRootSecret } from '../resources/maintenance-root-secret.ts'
import { OSRootSecret } from '../resources/os-root-secret.ts'
import { SiblingKeys } from '../resources/sibling-keys.ts'

const active = { id: 'v1alpha1' }

/** The authority of the machine API; a worker has only its certificate. */
export const configRootOS: Controller = defineController({
  name: 'secrets.RootOSController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, active) },
  outputs: { root: exclusive(OSRootSecret) },
  reconcile({ config, root }) {
    const found = declared(config.get('v1alpha1'))
    const machine = found?.machine
    if (!machine) return
    const shared = sharedAddresses(found).map(addressOnly)
    const forPods = machine.features?.kubernetesTalosAPIAccess?.enabled ? machineApiNames : []
    const sans = [...new Set([...(machine.certSANs ?? []), ...shared, ...forPods])]
    root.put('os', {
      ...(machine.ca?.key && { issuingCA: pairOf(machine.ca) }),
      acceptedCAs: acceptedCAs(machine),
      certSANIPs: sans.filter(isIp),
      certSANDNSNames: sans.filter((name) => !isIp(name)),
      token: machine.token ?? '',
    })
  },
})

/** The authority of etcd. */
export const configRootEtcd: Controller = defineController({
  name: 'secrets.RootEtcdController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, active) },
  outputs: { root: exclusive(EtcdRootSecret) },
  reconcile({ config, root }) {
    const found = declared(config.get('v1alpha1'))
    if (found && isControlPlane(found.machine) && found.cluster.etcd?.ca) root.put('etcd', { etcdCA: pairOf(found.cluster.etcd.ca) })
  },
})

/** The authorities, keys and tokens of Kubernetes, on the control plane. */
export const configRootKubernetes: Controller = defineController({
  name: 'secrets.RootKubernetesController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, active) },
  outputs: { root: exclusive(KubernetesRootSecret) },
  reconcile({ config, root }) {
    const found = declared(config.get('v1alpha1'))
    // One document of a configuration may be in force before the rest of it is found.
    const { endpoint, localAPIServerPort = 6443 } = found?.cluster.controlPlane ?? {}
    if (!found || !endpoint || !isControlPlane(found.machine)) return
    const { cluster } = found
    const shared = sharedAddresses(found).map(addressOnly)
    const [tokenId = '', tokenSecret = ''] = (cluster.token ?? '').split('.')
    root.put('k8s', {
      name: cluster.clusterName ?? '',
      endpoint: splitUrl(endpoint),
      local_endpoint: splitUrl(`https://localhost:${localAPIServerPort}`),
      // A virtual IP is always included. Its arrival must not reissue certificates, which would restart the API server.
      certSANs: [...new Set([...(cluster.apiServer?.certSANs ?? []), ...shared])],
      apiServerIPs: serviceSubnets(cluster).map((subnet) => nthAddress(parsePrefix(subnet), 1)),
      dnsDomain: cluster.network?.dnsDomain || 'cluster.local',
      ...(cluster.ca && { issuingCA: pairOf(cluster.ca) }),
      acceptedCAs: acceptedCAs(cluster),
      serviceAccount: { key: cluster.serviceAccount?.key ?? '' },
      ...(cluster.aggregatorCA && { aggregatorCA: pairOf(cluster.aggregatorCA) }),
      aesCBCEncryptionSecret: cluster.aescbcEncryptionSecret ?? '',
      bootstrapTokenID: tokenId,
      bootstrapTokenSecret: tokenSecret,
      secretboxEncryptionSecret: cluster.secretboxEncryptionSecret ?? '',
    })
  },
})

/** Keys of Kubernetes that are accepted besides, on the control plane. */
export const configKubernetesKeys: Controller = defineController({
  name: 'secrets.KubernetesKeysController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, active) },
  outputs: { keys: exclusive(KubernetesKeys) },
  reconcile({ config, keys }) {
    const found = declared(config.get('v1alpha1'))
    if (!found || !isControlPlane(found.machine)) return
    const { acceptedServiceAccountKeys = [], secretboxKeys = [] } = find(found, KubernetesKeysConfig) ?? {}
    keys.put('k8s', { acceptedServiceAccountKeys, secretboxKeys })
  },
})

/** Keys that seal keys of disks for workers, on the control plane. */
export const configSiblingKeys: Controller = defineController({
  name: 'secrets.SiblingKeysController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, active) },
  outputs: { siblings: exclusive(SiblingKeys) },
  reconcile({ config, siblings }) {
    const found = declared(config.get('v1alpha1'))
    const { keys } = (found && isControlPlane(found.machine) && find(found, SiblingKeysConfig)) || {}
    if (keys) siblings.put('siblings', { keys })
  },
})

/** What the kubelet joins with; the endpoint is the local load balancer where that is enabled. */
export const configKubelet: Controller = defineController({
  name: 'secrets.KubeletController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, active) },
  outputs: { kubelet: exclusive(KubeletSecret) },
  reconcile({ config, kubelet }) {
    const found = declared(config.get('v1alpha1'))
    const endpoint = found?.cluster.controlPlane?.endpoint
    if (!found || !endpoint) return
    const { machine, cluster } = found
    const [tokenId = '', tokenSecret = ''] = (cluster.token ?? '').split('.')
    const prism = machine.features?.kubePrism
    kubelet.put('kubelet', {
      endpoint: splitUrl(prism?.enabled ? `https://127.0.0.1:${prism.port || 7445}` : endpoint),
      acceptedCAs: acceptedCAs(cluster),
      bootstrapTokenID: tokenId,
      bootstrapTokenSecret: tokenSecret,
    })
  },
})

/** An authority for maintenance mode; it never leaves memory. */
export const configMaintenanceRoot: Controller = defineController({
  name: 'secrets.MaintenanceRootController',
  inputs: {},
  outputs: { root: exclusive(MaintenanceRootSecret) },
  reconcile({ root, now }) {
    if (root.get('maintenance')) root.keep('maintenance')
    else
      root.put('maintenance', { ca: encoded(newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519', lifetime: day, now: now() })) })
  },
})

interface Pair {
  crt?: string | undefined
  key?: string | undefined
}

/** Absent halves become empty strings, as the resources have them. */
const pairOf = ({ crt = '', key = '' }: Pair) => ({ crt, key })

/** The authorities whose certificates are accepted, the issuing one first. */
const acceptedCAs = ({ ca, acceptedCAs = [] }: { ca?: Pair | undefined; acceptedCAs?: Pair[] | undefined }) =>
  [ca, ...acceptedCAs].flatMap((each) => (each?.crt ? [{ crt: each.crt }] : []))

function isControlPlane({ type }: { type?: string | undefined }): boolean {
  return type === 'controlplane' || type === 'init'
}
