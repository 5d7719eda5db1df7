/** Scaleway: the public interface uses DHCP, further public addresses and routes are static. */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { listOf, mappingOf, metadataOf, readJson, textOf, textsOf } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'

const base = 'http://169.254.42.42'

/** The public interface, which the metadata does not identify: the first. */
const firstOf = (known: PlatformTransport['links']) => known.toSorted((a, b) => a.index - b.index)[0]

export const scaleway: Platform = {
  async network({ fetch, links: known }) {
    const server = readJson((await fetch(`${base}/conf?format=json`)) ?? '{}', 'scaleway metadata')
    const inner = listOf(server.private_nics)
    const privates = inner.flatMap((nic) => {
      const link = linkWith(nic.mac_address, known)
      return link ? [declaredLink(link.name, { dhcp4: { ...dhcp, routeMetric: 2 * dhcp.routeMetric } })] : []
    })
    const outer = firstOf(known.filter(({ name }) => !privates.some((link) => link.name === name)))
    const fours = listOf(server.public_ips_v4)
    const sixes = listOf(server.public_ips_v6)
    const oldSix = mappingOf(server.ipv6)
    const statics = [...fours, ...sixes, oldSix].filter((one) => textOf(one.address) !== '' && one.provisioning_mode !== 'dhcp')
    const own = statics.filter((one) => one.provisioning_mode !== 'slaac' && textOf(one.netmask) !== '')
    const links = outer
      ? [
          declaredLink(outer.name, {
            dhcp4: dhcp,
            addresses: own.map((one) => ({ address: withMask(textOf(one.address), textOf(one.netmask)) })),
            routes: own.flatMap((one) => (textOf(one.gateway) ? [route('', textOf(one.gateway))] : [])).slice(0, 2),
          }),
          ...privates,
        ]
      : privates
    const hostname = textOf(server.hostname)
    const id = textOf(server.id)
    const zone = textOf(mappingOf(server.location).zone_id)
    const inAll = [mappingOf(server.public_ip), ...fours, ...sixes].map((one) => textOf(one.address))
    return platformNetwork(
      {
        links,
        hostname,
        externalIPs: inAll,
        metadata: metadataOf({
          platform: 'scaleway',
          hostname,
          region: zone,
          zone,
          instanceType: textOf(server.commercial_type),
          instanceId: id,
          providerId: id && `scaleway://instance/${zone}/${id}`,
          tags: textsOf(server.tags).length > 0 ? Object.fromEntries(textsOf(server.tags).map((tag) => [tag, ''])) : undefined,
        }),
      },
      known,
    )
  },
  async userData({ fetch }) {
    // Only the root user of a machine may read its user data.
    return (await fetch(`${base}/user_data/cloud-init`, { privileged: true })) || undefined
  },
}
