/** An affiliate as annotations of its Node in Kubernetes: the second registry of discovery. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { parseIpPort } from '../../../wire/host-port.ts'
import { parseIp } from '../../../wire/ip.ts'
import { tryPrefix } from '../../../wire/prefix.ts'
import type { Affiliate } from '../resources/affiliate.ts'

type AffiliateSpec = SpecOf<typeof Affiliate>

const networking = (name: string) => `networking.talos.dev/${name}`
const nodeId = 'cluster.talos.dev/node-id'
const selfIps = networking('self-ips')
const apiServerPort = networking('api-server-port')
const meshIp = networking('kubespan-ip')
const meshKey = networking('kubespan-public-key')
const prefixes = networking('assigned-prefixes')
const endpoints = networking('kubespan-endpoints')
const excluded = networking('kubespan-exclude-advertised-networks')
const controlPlaneLabel = 'node-role.kubernetes.io/control-plane'
const hostnameLabel = 'kubernetes.io/hostname'
/** Limit of elements in one annotation; more are cut. */
const most = 256

/** The annotations that publish an affiliate. */
export function writeAnnotations({ nodeId: id, addresses, kubespan, controlPlane }: AffiliateSpec): Record<string, string> {
  return {
    [nodeId]: id,
    [selfIps]: addresses.join(','),
    ...(controlPlane && { [apiServerPort]: String(controlPlane.port) }),
    ...(kubespan && {
      [meshIp]: kubespan.address,
      [meshKey]: kubespan.publicKey,
      [prefixes]: kubespan.additionalAddresses.join(','),
      [endpoints]: kubespan.endpoints.join(','),
      [excluded]: kubespan.excludeAdvertisedNetworks.join(','),
    }),
  }
}

/** The affiliate in a Node's annotations; undefined when there is none. Invalid elements are left out. */
export function readAnnotations({ metadata, status }: KubeObject): AffiliateSpec | undefined {
  const { name = '', annotations = {}, labels = {} } = metadata
  const id = annotations[nodeId]
  if (!id || name === '') return undefined
  const list = (key: string, reads: (text: string) => boolean) =>
    (annotations[key] ?? '')
      .split(',')
      .slice(0, most)
      .map((part) => part.trim())
      .filter(reads)
  const { nodeInfo } = (status ?? {}) as { nodeInfo?: { osImage?: string } }
  const port = Number(annotations[apiServerPort])
  const [publicKey = '', address = ''] = [annotations[meshKey], annotations[meshIp]]
  return {
    nodeId: id,
    addresses: list(selfIps, isAddress),
    hostname: labels[hostnameLabel] ?? name,
    nodename: name,
    operatingSystem: nodeInfo?.osImage ?? '',
    machineType: controlPlaneLabel in labels ? 'controlplane' : 'worker',
    ...(publicKey !== '' &&
      isAddress(address) && {
        kubespan: {
          publicKey,
          address,
          additionalAddresses: list(prefixes, isNetwork),
          endpoints: list(endpoints, isEndpoint),
          excludeAdvertisedNetworks: list(excluded, isNetwork),
        },
      }),
    ...(Number.isInteger(port) && port > 0 && port < 65536 && { controlPlane: { port } }),
  }
}

const isAddress = (text: string): boolean => parseIp(text) !== undefined

const isNetwork = (text: string): boolean => isAddress(text) || tryPrefix(text) !== undefined

const isEndpoint = (text: string): boolean => (parseIpPort(text)?.port ?? 0) > 0
