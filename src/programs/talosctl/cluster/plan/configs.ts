/** The secrets and configurations of a cluster, made once and kept with it, so that nodes added later are of the same cluster. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultPodSubnet, defaultServiceSubnet, ipv6PodSubnet, ipv6ServiceSubnet } from '../../../../os/config/cluster-networks.ts'
import type { ConfigContainer } from '../../../../os/config/container.ts'
import type { SecretsBundle } from '../../../../os/config/generate/secrets.ts'
import { isIPv6 } from '../../../../wire/prefix.ts'
import {
  type ClusterRecord,
  clusterPaths,
  discoveryAddress,
  kubernetesAddress,
  type NodeRecord,
  networksOf,
  writeAtomically,
} from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'
import type { Context } from '../../talosconfig/talosconfig.ts'
import { machineEndpoints } from '../engine/reach.ts'
import type { Credentials } from '../node-api.ts'
import { installDisk } from '../qemu/request.ts'
import { type FirewallAction, requestPatches } from './request-patches.ts'

/** Settings of machine configurations beyond those of the cluster's record. */
export interface ConfigRequest {
  dnsDomain: string
  mirrors: { registry: string; endpoint: string }[]
  insecureRegistries: string[]
  cniUrl?: string | undefined
  /** Whether the nodes are joined by a mesh. */
  kubespan?: boolean
  /** Where clients reach the machines, when not at their own addresses. */
  endpoint?: string | undefined
  /** Port of the balancer on every node; 0 for none. */
  kubePrismPort?: number | undefined
  /** Whether nodes have a firewall, and its default action. */
  firewall?: FirewallAction | undefined
  /** What machines are installed from. */
  installImage?: string | undefined
  patches: { all: string[]; controlplane: string[]; worker: string[] }
  /** Whether any of it was requested, rather than left to its default. */
  requested: boolean
}

/** A cluster's configurations by role, and who its administrator is. */
export interface Configs {
  controlplane: ConfigContainer
  worker: ConfigContainer
  credentials: Credentials
  /** The context of the client configuration. */
  context(cluster: ClusterRecord): Context
}

/**
 * Validates the requested configurations before anything is created: nodes start while the real secrets,
 * which take a while, are being generated.
 */
export async function checkConfigs(directory: string, cluster: ClusterRecord, request: ConfigRequest): Promise<void> {
  const roles = (['controlplane', 'worker'] as const).filter((role) => !existsSync(join(directory, `${role}.yaml`)))
  if (roles.length === 0) return
  const { newSecrets } = await import('../../../../os/config/generate/secrets.ts')
  const { newKey } = await import('../../../../pki/key.ts')
  const secrets = await newSecrets({ serviceAccount: newKey('ecdsa') })
  for (const role of roles) await makeConfig(role, cluster, request, secrets)
}

/** Makes what a new cluster needs to know, or reads what was made before. */
export async function provideConfigs(directory: string, cluster: ClusterRecord, request: ConfigRequest): Promise<Configs> {
  const { newSecrets, formatSecrets, parseSecrets } = await import('../../../../os/config/generate/secrets.ts')
  const { formatClientConfig, newClientConfig } = await import('../../../../os/config/generate/talosconfig.ts')
  const { parseConfig } = await import('../../../../os/config/parse.ts')
  const paths = clusterPaths(directory)
  // The secrets come first and are never made twice: what was signed with them is on nodes by then.
  if (!existsSync(paths.secrets)) writeAtomically(paths.secrets, formatSecrets(await newSecrets()))
  const secrets = parseSecrets(readFileSync(paths.secrets))
  const config = async (role: 'controlplane' | 'worker') => {
    const file = join(directory, `${role}.yaml`)
    if (!existsSync(file)) writeAtomically(file, (await makeConfig(role, cluster, request, secrets)).toString())
    return parseConfig(readFileSync(file))
  }
  if (!existsSync(paths.talosconfig)) {
    writeAtomically(
      paths.talosconfig,
      formatClientConfig(
        newClientConfig(secrets.certs.os, { clusterName: cluster.name, endpoints: endpointsOf(cluster, request), nodes: [] }),
      ),
    )
  }
  const { context: own, credentials } = await readAdministrator(directory, cluster.name)
  return {
    controlplane: await config('controlplane'),
    worker: await config('worker'),
    credentials,
    context: (current) => ({ ...own, endpoints: endpointsOf(current, request), nodes: [] }),
  }
}

/** The administrator of a cluster whose configurations were made: the context of the client configuration, and what it holds. */
export async function readAdministrator(directory: string, name: string): Promise<{ context: Context; credentials: Credentials }> {
  const { parseTalosconfig } = await import('../../talosconfig/talosconfig.ts')
  const { talosconfig } = clusterPaths(directory)
  const client = await parseTalosconfig(readFileSync(talosconfig, 'utf8'), `"${talosconfig}"`)
  const context = client.contexts[name]
  if (!context?.ca || !context.crt || !context.key)
    throw new Error(`"${talosconfig}" does not hold the cluster's context: destroy the cluster and create it again`)
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  return { context, credentials: { ca: pem(context.ca), cert: pem(context.crt), key: pem(context.key) } }
}

/** Refuses settings of configurations that were made with other ones: machines are changed by their own API. */
export async function checkSameConfiguration(directory: string, cluster: ClusterRecord, request: ConfigRequest): Promise<void> {
  if (!request.requested) return
  const { generate } = await import('../../../../os/config/generate/generate.ts')
  const { parseSecrets } = await import('../../../../os/config/generate/secrets.ts')
  const secrets = parseSecrets(readFileSync(clusterPaths(directory).secrets))
  for (const role of ['controlplane', 'worker'] as const) {
    const file = join(directory, `${role}.yaml`)
    if (!existsSync(file) || roleConfig(generate, role, cluster, request, secrets).toString() === readFileSync(file, 'utf8')) continue
    throw new UsageError(
      `cluster "${cluster.name}" was created with other settings for its machines: leave patches, mirrors and the like out and change machines with "talosctl patch machineconfig", or destroy the cluster and create it again`,
    )
  }
}

function roleConfig(
  generate: typeof import('../../../../os/config/generate/generate.ts').generate,
  role: NodeRecord['role'],
  cluster: ClusterRecord,
  request: ConfigRequest,
  secrets: SecretsBundle,
): ConfigContainer {
  const { patches } = request
  const all = [...requestPatches(cluster, request), ...patches.all]
  const options = generateOptions(cluster, request, secrets)
  return generate(role, options, { all, controlPlane: patches.controlplane, worker: patches.worker })
}

/** The configuration of a role. Throws with all errors when the requested settings make it invalid. */
async function makeConfig(
  role: 'controlplane' | 'worker',
  cluster: ClusterRecord,
  request: ConfigRequest,
  secrets: SecretsBundle,
): Promise<ConfigContainer> {
  const { generate } = await import('../../../../os/config/generate/generate.ts')
  const { patches } = request
  const options = generateOptions(cluster, request, secrets)
  const all = [...requestPatches(cluster, request), ...patches.all]
  const made = generate(role, options, { all, controlPlane: patches.controlplane, worker: patches.worker })
  const { errors } = made.validate(cluster.machines ? 'metal' : 'container')
  if (errors.length > 0)
    throw new Error(
      `the configuration for ${role}s is not valid: ${errors.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ')}`,
    )
  return made
}

/** A node's own configuration: its role's, with its name. */
export function nodeConfig(configs: Configs, node: NodeRecord): string {
  const hostname = JSON.stringify({ apiVersion: 'v1alpha1', kind: 'HostnameConfig', auto: 'off', hostname: node.name })
  return configs[node.role].patch(hostname).toString()
}

function endpointsOf(cluster: ClusterRecord, { endpoint }: ConfigRequest): string[] {
  return endpoint ? [endpoint] : machineEndpoints(cluster)
}

function generateOptions(cluster: ClusterRecord, request: ConfigRequest, secrets: SecretsBundle) {
  const { network, kubernetes, discovery, hostAddress } = cluster
  const mirrors = Map.groupBy(request.mirrors, ({ registry }) => registry)
  const names = [
    network.gateway,
    ...(network.second ? [network.second.gateway] : []),
    '127.0.0.1',
    ...(hostAddress === '0.0.0.0' ? [] : [hostAddress]),
    ...(request.endpoint ? [request.endpoint] : []),
  ]
  return {
    clusterName: cluster.name,
    endpoint: `https://${kubernetesAddress(cluster)}`,
    secrets,
    kubernetesVersion: kubernetes.version,
    dnsDomain: request.dnsDomain,
    additionalSans: [...new Set(names)],
    install: cluster.machines ? { disk: installDisk(cluster.nodes[0]?.disks ?? []) } : (false as const),
    registryMirrors: Object.fromEntries([...mirrors].map(([registry, entries]) => [registry, entries.map(({ endpoint }) => endpoint)])),
    nameservers: network.nameservers,
    podSubnets: networksOf(cluster).map((cidr) => (isIPv6(cidr) ? ipv6PodSubnet : defaultPodSubnet)),
    serviceSubnets: networksOf(cluster).map((cidr) => (isIPv6(cidr) ? ipv6ServiceSubnet : defaultServiceSubnet)),
    discovery: discovery !== undefined,
    ...(discovery && { discoveryEndpoint: `http://${discoveryAddress(cluster)}` }),
    kubespan: request.kubespan === true,
    ...(request.cniUrl && { cni: { name: 'custom' as const, urls: [request.cniUrl] } }),
  }
}
