/** Sections of `cluster` about the components of Kubernetes. */

import * as v from 'valibot'
import {
  argument,
  certificate,
  certificateAndKey,
  described,
  duration,
  flag,
  free,
  integer,
  isCidr,
  keyedListOf,
  listOf,
  mapOf,
  privateKey,
  replacedFree,
  replacedListOf,
  section,
  text,
} from '../../../document/fields.ts'
import { isObject } from '../../../document/is-object.ts'
import type { Reporter } from '../../../document/kind.ts'
import type { Path } from '../../../document/path.ts'
import { notYet } from '../../../document/unsupported.ts'
import { argumentRules } from './arguments.ts'
import { isDomainName } from './names.ts'

const resources = section({ requests: described(free, 'What is kept free for it.'), limits: described(free, 'The most it gets.') })
const volumes = listOf(
  section({
    hostPath: described(text, 'The path on the machine.'),
    mountPath: described(text, 'The path inside.'),
    readonly: described(flag, 'Nothing can be written.'),
  }),
)

/** Fields that every component of the control plane has. */
const component = {
  image: described(text, 'The image it runs from.'),
  extraArgs: described(mapOf(argument), 'More flags of the program.'),
  extraVolumes: described(volumes, 'Folders of the machine it is given.'),
  env: described(mapOf(text), 'Environment variables.'),
  resources: described(resources, 'How much of the machine it gets.'),
}

const endpoint = v.pipe(
  v.string(),
  v.check(
    (value) => URL.canParse(value) && new URL(value).protocol === 'https:' && new URL(value).hostname !== '',
    '{} is not a URL like "https://10.0.0.1:6443"',
  ),
)

/** Fields about Kubernetes directly in `cluster`. */
export const clusterKubernetesFields = {
  controlPlane: described(
    section({
      endpoint: described(endpoint, 'Where the Kubernetes API of the cluster is reached: a load balancer, a shared address or a name.'),
      localAPIServerPort: described(integer, 'The port on which the API server listens on its own node.'),
    }),
    'How the control plane is reached.',
  ),
  clusterName: described(text, 'The name of the cluster.'),
  network: described(
    section({
      cni: described(
        section({
          name: described(text, 'The network plugin: flannel, custom or none.'),
          urls: described(listOf(text), 'Manifests of a custom network plugin.'),
          flannel: described(
            section({
              extraArgs: described(listOf(text), 'More flags of the program.'),
              kubeNetworkPoliciesEnabled: described(flag, 'Whether network policies are put into effect.'),
            }),
            'Settings of flannel.',
          ),
        }),
        'What gives pods their network.',
      ),
      dnsDomain: described(text, 'The domain of the names inside the cluster.'),
      podSubnets: described(replacedListOf(text), 'Where pods get their addresses from.'),
      serviceSubnets: described(replacedListOf(text), 'Where services get their addresses from.'),
    }),
    'Networks of pods and services.',
  ),
  token: described(text, 'The token with which nodes join Kubernetes.'),
  aescbcEncryptionSecret: described(text, 'Older key for secrets in etcd, base64.'),
  secretboxEncryptionSecret: described(text, 'The key under which secrets are encrypted in etcd.'),
  ca: described(certificateAndKey, 'The authority of Kubernetes.'),
  acceptedCAs: described(listOf(certificate), 'More authorities that are trusted, while one is being replaced.'),
  aggregatorCA: described(certificateAndKey, 'The authority of the API aggregation layer.'),
  serviceAccount: described(privateKey, 'The key that signs tokens of service accounts.'),
  apiServer: described(
    section({
      ...component,
      certSANs: described(listOf(text), "More names in the API server's certificate."),
      disablePodSecurityPolicy: described(
        notYet(flag, 'Kubernetes has no pod security policies any more, use admissionControl', { accepts: [true] }),
        'Kept for old configurations, without effect.',
      ),
      admissionControl: described(
        keyedListOf(
          section({ name: described(text, 'The name of the plug-in.'), configuration: described(free, 'Its configuration.') }),
          'name',
        ),
        'Configuration of admission plugins.',
      ),
      auditPolicy: described(replacedFree, 'The policy of the audit log.'),
      authorizationConfig: described(
        keyedListOf(
          section({
            type: described(text, 'The kind of authorizer.'),
            name: described(text, 'What it is called.'),
            webhook: described(free, 'How it is called.'),
          }),
          'name',
        ),
        'Who decides what may be done, in order.',
      ),
    }),
    "The API server's settings.",
  ),
  controllerManager: described(section(component), "The controller manager's settings."),
  proxy: described(
    section({
      disabled: described(flag, 'Switches this off.'),
      image: described(text, 'The image it runs from.'),
      mode: described(text, 'How packets are sent on: nftables, iptables or ipvs.'),
      extraArgs: described(mapOf(argument), 'More flags of the program.'),
    }),
    "kube-proxy's settings.",
  ),
  scheduler: described(
    section({ ...component, config: described(free, 'Its configuration, as a document of Kubernetes.') }),
    "The scheduler's settings.",
  ),
  coreDNS: described(
    section({ disabled: described(flag, 'Switches this off.'), image: described(text, 'The image it runs from.') }),
    "The cluster's DNS server.",
  ),
  externalCloudProvider: described(
    section({ enabled: described(flag, 'Switches this on.'), manifests: described(listOf(text), 'Where its manifests are.') }),
    'A cloud provider that runs in the cluster.',
  ),
  extraManifests: v.pipe(
    listOf(text),
    v.description('URLs of manifests that are applied once the control plane is up.'),
    v.metadata({ example: ['https://www.example.com/manifest.yaml'] }),
  ),
  extraManifestHeaders: described(mapOf(text), 'Headers of the requests for manifests.'),
  inlineManifests: v.pipe(
    keyedListOf(section({ name: described(text, 'What it is called.'), contents: described(text, 'The manifest itself.') }), 'name'),
    v.description('Manifests that are applied once the control plane is up.'),
    v.metadata({ example: [{ name: 'namespace-ci', contents: 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ci\n' }] }),
  ),
  adminKubeconfig: described(
    section({ certLifetime: described(duration, 'How long their certificate holds.') }),
    'Files for administrators of Kubernetes.',
  ),
  allowSchedulingOnMasters: described(flag, 'Old word for allowSchedulingOnControlPlanes.'),
  allowSchedulingOnControlPlanes: v.pipe(flag, v.description('Let workloads run on control planes.'), v.metadata({ example: true })),
}

const clusterKubernetes = section(clusterKubernetesFields)
type ClusterKubernetes = v.InferOutput<typeof clusterKubernetes>

const programs = [
  ['apiServer', 'kube-apiserver'],
  ['controllerManager', 'kube-controller-manager'],
  ['scheduler', 'kube-scheduler'],
  ['proxy', 'kube-proxy'],
] as const

const isLocation = (value: string) =>
  value.startsWith('/') || (URL.canParse(value) && /^(https?|file):$/.test(new URL(value).protocol)) || /^[\w./-]+\.ya?ml$/.test(value)

/** Rules of these sections; `secretRules` covers the secrets. */
export function clusterKubernetesRules(cluster: ClusterKubernetes, report: Reporter): void {
  const at = (...path: Path) => ['cluster', ...path]
  if (!cluster.controlPlane?.endpoint)
    report.error(at('controlPlane', 'endpoint'), 'the endpoint of the cluster is required, like "https://10.0.0.1:6443"')
  networkRules(cluster.network ?? {}, report)
  const cloud = cluster.externalCloudProvider
  if (cloud?.manifests?.length && !cloud.enabled)
    report.error(at('externalCloudProvider', 'manifests'), 'only when the provider is enabled')
  for (const [key, manifests] of [
    [['externalCloudProvider', 'manifests'], cloud?.manifests],
    [['extraManifests'], cluster.extraManifests],
  ] as const) {
    for (const [index, manifest] of (manifests ?? []).entries()) {
      if (!isLocation(manifest)) report.error(at(...key, index), `${JSON.stringify(manifest)} is not a URL`)
    }
  }
  const names = new Set<string>()
  for (const [index, { name = '' }] of (cluster.inlineManifests ?? []).entries()) {
    if (!name.trim()) report.error(at('inlineManifests', index, 'name'), 'a name is required')
    else if (names.has(name)) report.error(at('inlineManifests', index, 'name'), `${JSON.stringify(name)} is used twice`)
    names.add(name)
  }
  const args = Object.keys(cluster.apiServer?.extraArgs ?? {})
  if (cluster.apiServer?.authorizationConfig?.length) {
    for (const key of args) {
      if (/^authorization-(mode|webhook-.*)$/.test(key))
        report.error(at('apiServer', 'extraArgs', key), 'cannot be combined with authorizationConfig')
    }
  }
  for (const [key, program] of programs) argumentRules(program, cluster[key], report, at(key))
  for (const [index, { name }] of (cluster.apiServer?.admissionControl ?? []).entries()) {
    if (!name) report.error(at('apiServer', 'admissionControl', index, 'name'), 'the name of the admission plugin is required')
  }
  for (const [index, authorizer] of (cluster.apiServer?.authorizationConfig ?? []).entries()) {
    for (const key of ['type', 'name'] as const)
      if (!authorizer[key]) report.error(at('apiServer', 'authorizationConfig', index, key), `the ${key} of the authorizer is required`)
  }
  const connection = cluster.scheduler?.config?.clientConnection
  if (connection !== undefined && !isObject(connection))
    report.error(at('scheduler', 'config', 'clientConnection'), 'a map is required: see KubeSchedulerConfiguration')
  for (const component of ['apiServer', 'controllerManager', 'scheduler'] as const) {
    for (const [index, volume] of (cluster[component]?.extraVolumes ?? []).entries()) {
      for (const key of ['hostPath', 'mountPath'] as const)
        if (!volume[key]) report.error(at(component, 'extraVolumes', index, key), 'a path is required')
    }
    for (const part of ['requests', 'limits'] as const) {
      for (const key of Object.keys(cluster[component]?.resources?.[part] ?? {})) {
        if (key !== 'cpu' && key !== 'memory') report.error(at(component, 'resources', part, key), 'only cpu and memory can be requested')
      }
    }
  }
}

function networkRules({ cni, dnsDomain, podSubnets, serviceSubnets }: NonNullable<ClusterKubernetes['network']>, report: Reporter): void {
  const at = (...path: Path) => ['cluster', 'network', ...path]
  if (dnsDomain && !isDomainName(dnsDomain)) report.error(at('dnsDomain'), `${JSON.stringify(dnsDomain)} is not a domain name`)
  for (const [key, subnets] of Object.entries({ podSubnets, serviceSubnets })) {
    for (const [index, subnet] of (subnets ?? []).entries()) {
      if (!isCidr(subnet)) report.error(at(key, index), `${JSON.stringify(subnet)} is not a network with a prefix length`)
    }
  }
  if (!cni) return
  const { name = 'flannel', urls = [], flannel } = cni
  if (!['flannel', 'custom', 'none'].includes(name))
    report.error(at('cni', 'name'), `${JSON.stringify(name)} is not one of flannel, custom, none`)
  if (name === 'custom' && urls.length === 0)
    report.warning(at('cni', 'urls'), 'no manifests: the cluster has no network until one is installed')
  if (name !== 'custom' && urls.length) report.error(at('cni', 'urls'), 'only a custom network plugin has manifests')
  for (const [index, url] of urls.entries()) {
    if (!isLocation(url)) report.error(at('cni', 'urls', index), `${JSON.stringify(url)} is not a URL`)
  }
  if (flannel && name !== 'flannel') report.error(at('cni', 'flannel'), `has no meaning with "${name}"`)
}
