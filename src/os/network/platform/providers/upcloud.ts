/** UpCloud: every address of every interface, each marked as DHCP or static. */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, dhcpAt, linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { listOf, mappingOf, metadataOf, readJson, textOf, textsOf } from '../loose.ts'
import type { Platform } from '../platform.ts'

const base = 'http://169.254.169.254/metadata/v1'

export const upcloud: Platform = {
  async network({ fetch, links: known }) {
    const server = readJson((await fetch(`${base}.json`)) ?? '{}', 'upcloud metadata')
    const network = mappingOf(server.network)
    const nics = listOf(network.interfaces)
    const nameServers = textsOf(network.dns)
    const links = nics.flatMap((nic, place) => {
      const link = linkWith(nic.mac, known)
      if (!link) return []
      const all = listOf(nic.ip_addresses)
      for (const one of all) nameServers.push(...textsOf(one.dns))
      const usesDhcp = (family: string) => all.some((one) => one.family === family && one.dhcp === true)
      const statics = all.filter((one) => one.dhcp !== true && textOf(one.address) !== '')
      const metric = dhcp.routeMetric * (place + 1)
      return [
        declaredLink(link.name, {
          ...(usesDhcp('IPv4') && { dhcp4: dhcpAt(metric) }),
          ...(usesDhcp('IPv6') && { dhcp6: dhcpAt(metric) }),
          addresses: statics.map((one) => ({ address: withMask(textOf(one.address), textOf(one.network).split('/')[1]) })),
          routes: statics.flatMap((one) => (textOf(one.gateway) ? [route('', textOf(one.gateway), metric)] : [])),
        }),
      ]
    })
    const hostname = textOf(server.hostname)
    const id = textOf(server.instance_id)
    const outer = nics.filter((nic) => nic.type === 'public')
    return platformNetwork(
      {
        links,
        hostname,
        nameServers,
        externalIPs: outer.flatMap((nic) => listOf(nic.ip_addresses).map((one) => textOf(one.address))),
        metadata: metadataOf({
          platform: 'upcloud',
          hostname,
          region: textOf(server.region).replace(/\d+$/, '').replace(/-$/, ''),
          zone: textOf(server.region),
          instanceId: id,
          providerId: id && `upcloud:////${id}`,
        }),
      },
      known,
    )
  },
  async userData({ fetch }) {
    return (await fetch(`${base}/user_data`)) || undefined
  },
}
