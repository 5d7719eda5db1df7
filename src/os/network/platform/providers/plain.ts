/** Platforms that publish single values and leave addresses to DHCP, as the default layer configures it. */

import { addressOnly } from '../../../../wire/prefix.ts'
import { platformNetwork } from '../declare.ts'
import { mappingOf, metadataOf, readJson, textOf, textsOf, unwrapped } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'

type Names = Readonly<Record<'hostname' | 'instanceId' | 'instanceType' | 'zone' | 'address', string>>

const plain = (platform: string, provider: string, base: string, userData: string, names: Names): Platform => ({
  async network({ fetch, links }) {
    const read = async (path: string) => (await fetch(`${base}/${path}`))?.trim() ?? ''
    const [hostname, instanceId, instanceType, zone, address = ''] = await Promise.all(
      [names.hostname, names.instanceId, names.instanceType, names.zone, names.address].map(read),
    )
    const providerId = instanceId && `${provider}://${instanceId}`
    const metadata = metadataOf({ platform, hostname, region: zone, zone, instanceType, instanceId, providerId })
    return platformNetwork({ hostname, externalIPs: [address], metadata }, links)
  },
  async userData({ fetch }) {
    return (await fetch(userData)) || undefined
  },
})

const usual: Names = {
  hostname: 'local-hostname',
  instanceId: 'instance-id',
  instanceType: 'service-offering',
  zone: 'availability-zone',
  address: 'public-ipv4',
}

/** Exoscale. */
export const exoscale = plain('exoscale', 'exoscale', 'http://169.254.169.254/1.0/meta-data', 'http://169.254.169.254/1.0/user-data', usual)

/** Apache CloudStack: the virtual router of the network, under its DNS name. */
export const cloudstack = plain(
  'cloudstack',
  'cloudstack',
  'http://data-server/latest/meta-data',
  'http://data-server/latest/user-data',
  usual,
)

const linode = 'http://169.254.169.254/v1'

async function linodeReader({ fetch }: Pick<PlatformTransport, 'fetch'>) {
  const token = await fetch(`${linode}/token`, { method: 'PUT', headers: { 'metadata-token-expiry-seconds': '3600' } })
  return (path: string) =>
    fetch(`${linode}/${path}`, {
      headers: { 'metadata-token': token?.trim() ?? '', accept: path === 'user-data' ? '*/*' : 'application/json' },
    })
}

/** Akamai (Linode): a session token first, then JSON. */
export const akamai: Platform = {
  async network(transport) {
    const read = await linodeReader(transport)
    const instance = readJson((await read('instance')) ?? '{}', 'akamai metadata: instance')
    const network = readJson((await read('network')) ?? '{}', 'akamai metadata: network')
    const hostname = textOf(instance.label)
    const instanceId = textOf(instance.id)
    const own = [...textsOf(mappingOf(network.ipv4).public), textOf(mappingOf(network.ipv6).slaac)].map(addressOnly)
    const metadata = metadataOf({
      platform: 'akamai',
      hostname,
      region: textOf(instance.region),
      instanceType: textOf(instance.type),
      instanceId,
      providerId: instanceId && `linode://${instanceId}`,
    })
    return platformNetwork({ hostname, externalIPs: own, metadata }, transport.links)
  },
  async userData(transport) {
    const text = await (await linodeReader(transport))('user-data')
    return text ? unwrapped(text) : undefined
  },
}
