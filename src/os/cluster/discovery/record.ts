/** An affiliate as the discovery service stores it: an encrypted record, and encrypted endpoints that others may add to. */
import type { SpecOf } from '../../../cosi/resource.ts'
import { decode, encode } from '../../../rpc/codec.ts'
import type { sidero } from '../../../rpc/messages.ts'
import { messageType } from '../../../rpc/schema.ts'
import { formatHostPort, parseIpPort } from '../../../wire/host-port.ts'
import { formatIp, parseIp } from '../../../wire/ip.ts'
import { addressOnly, parsePrefix } from '../../../wire/prefix.ts'
import type { Affiliate } from '../resources/affiliate.ts'
import { SealError, seal, sealEndpoint, unseal, unsealEndpoint } from './sealed.ts'

type AffiliateSpec = SpecOf<typeof Affiliate>
type Message = sidero.discovery.client.Affiliate
type IPPrefix = sidero.discovery.client.IPPrefix

const record = 'sidero.discovery.client.Affiliate'
const endpointRecord = 'sidero.discovery.client.Endpoint'
/** Limits of one affiliate; a larger record is cut. */
const most = 256
const machineTypes = ['init', 'controlplane', 'worker'] as const

/** A node's record of itself, encrypted. */
export const writeAffiliate = (key: Uint8Array, spec: AffiliateSpec): Buffer => seal(key, encode(messageType(record), toWire(spec)))

/** Decrypts an affiliate's record; throws SealError when it belongs to another cluster. Endpoints that cannot be decrypted are left out. */
export function readAffiliate(key: Uint8Array, data: Uint8Array, endpoints: readonly Uint8Array[]): AffiliateSpec {
  const opened = unseal(key, data)
  let message: Message
  try {
    message = decode(messageType(record), opened) as unknown as Message
  } catch {
    throw new SealError('open affiliate: the record does not read')
  }
  const spec = fromWire(message)
  if (!spec.kubespan) return spec
  const known = endpoints.slice(0, most).flatMap((bytes) => readEndpoint(key, bytes) ?? [])
  return { ...spec, kubespan: { ...spec.kubespan, endpoints: [...new Set(known)] } }
}

/** `10.0.0.1:51820` or `[fd00::1]:51820`, encrypted; undefined when the text is not an endpoint. */
export function writeEndpoint(key: Uint8Array, endpoint: string): Buffer | undefined {
  const { address: ip, port } = parseIpPort(endpoint) ?? {}
  return ip && sealEndpoint(key, encode(messageType(endpointRecord), { ip, port }))
}

function readEndpoint(key: Uint8Array, bytes: Uint8Array): string | undefined {
  try {
    const { ip, port } = decode(messageType(endpointRecord), unsealEndpoint(key, bytes)) as unknown as sidero.discovery.client.Endpoint
    if (!isAddress(ip) || port < 1 || port > 65535) return undefined
    return formatHostPort(formatIp(ip), port)
  } catch {
    return undefined // one bad endpoint, by mistake or malice, must not hide the others
  }
}

const isAddress = (bytes: Uint8Array) => bytes.length === 4 || bytes.length === 16

function toWire({ nodeId, addresses, hostname, nodename, machineType, operatingSystem, kubespan, controlPlane }: AffiliateSpec) {
  return {
    nodeId,
    addresses: addresses.map(parseIp).filter((bytes) => bytes !== undefined),
    hostname,
    nodename: nodename ?? '',
    machineType,
    operatingSystem,
    ...(kubespan && {
      kubespan: {
        publicKey: kubespan.publicKey,
        address: parseIp(addressOnly(kubespan.address)) ?? new Uint8Array(),
        additionalAddresses: kubespan.additionalAddresses.map(prefixToWire),
        excludeAdvertisedAddresses: kubespan.excludeAdvertisedNetworks.map(prefixToWire),
      },
    }),
    ...(controlPlane && { controlPlane: { apiServerPort: controlPlane.port } }),
  }
}

function prefixToWire(text: string) {
  const { bytes, bits } = parsePrefix(text)
  return { ip: bytes, bits }
}

const prefixFromWire = ({ ip, bits }: IPPrefix): string[] => (isAddress(ip) && bits <= ip.length * 8 ? [`${formatIp(ip)}/${bits}`] : [])

function fromWire({ nodeId, addresses, hostname, nodename, machineType, operatingSystem, kubespan, controlPlane }: Message): AffiliateSpec {
  const networks = (list: readonly IPPrefix[]) => list.slice(0, most).flatMap(prefixFromWire)
  const meshed = kubespan && kubespan.publicKey !== '' && isAddress(kubespan.address)
  return {
    nodeId,
    addresses: addresses
      .slice(0, most)
      .filter(isAddress)
      .map((bytes) => formatIp(bytes)),
    hostname,
    ...(nodename && { nodename }),
    operatingSystem,
    machineType: machineTypes.find((type) => type === machineType) ?? 'unknown',
    ...(meshed && {
      kubespan: {
        publicKey: kubespan.publicKey,
        address: formatIp(kubespan.address),
        additionalAddresses: networks(kubespan.additionalAddresses),
        endpoints: [],
        excludeAdvertisedNetworks: networks(kubespan.excludeAdvertisedAddresses),
      },
    }),
    ...(controlPlane && { controlPlane: { port: controlPlane.apiServerPort } }),
  }
}
