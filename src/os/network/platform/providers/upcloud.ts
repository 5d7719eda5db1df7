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
    const cards = listOf(network.interfaces)
    const nameServers = textsOf(network.dns)
    const links = cards.flatMap((card, place) => {
      const link = linkWith(card.mac, known)
      if (!link) return []
      const all = listOf(card.ip_addresses)
      for (const one of all) nameServers.push(...textsOf(one.dns))
      const asked = (family: string) => all.some((one) => one.family === family && one.dhcp === true)
      const told = all.filter((one) => one.dhcp !== true && textOf(one.address) !== '')
      const metric = dhcp.routeMetric * (place + 1)
      return [
        declaredLink(link.name, {
          ...(asked('IPv4') ? { dhcp4: dhcpAt(metric) } : {}),
          ...(asked('IPv6') ? { dhcp6: dhcpAt(metric) } : {}),
          addresses: told.map((one) => ({ address: withMask(textOf(one.address), textOf(one.network).split('/')[1]) })),
          routes: told.flatMap((one) => (textOf(one.gateway) ? [route('', textOf(one.gateway), metric)] : [])),
        }),
      ]
    })
    const hostname = textOf(server.hostname)
    const id = textOf(server.instance_id)
    const outer = cards.filter((card) => card.type === 'public')
    return platformNetwork(
      {
        links,
        hostname,
        nameServers,
        externalIPs: outer.flatMap((card) => listOf(card.ip_addresses).map((one) => textOf(one.address))),
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
