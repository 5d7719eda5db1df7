/** DigitalOcean: droplet metadata with static addresses. */
import { declaredLink } from '../../link/declared.ts'
import { linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { listOf, mappingOf, metadataOf, readJson, textOf, textsOf } from '../loose.ts'
import type { Platform } from '../platform.ts'

const base = 'http://169.254.169.254/metadata/v1'

export const digitalOcean: Platform = {
  async network({ fetch, links: known }) {
    const droplet = readJson((await fetch(`${base}.json`)) ?? '{}', 'digital-ocean metadata')
    const { public: outer, private: inner } = mappingOf(droplet.interfaces)
    const links = [...listOf(outer), ...listOf(inner)].flatMap((nic) => {
      const link = linkWith(nic.mac, known)
      if (!link) return []
      const isPublic = nic.type !== 'private'
      const four = mappingOf(nic.ipv4)
      const anchor = mappingOf(nic.anchor_ipv4)
      const six = mappingOf(nic.ipv6)
      const addresses = []
      const routes = []
      for (const one of [four, anchor])
        if (textOf(one.ip_address)) addresses.push({ address: withMask(textOf(one.ip_address), one.netmask) })
      if (textOf(six.ip_address)) addresses.push({ address: withMask(textOf(six.ip_address), six.cidr) })
      if (isPublic && textOf(four.gateway)) routes.push(route('', textOf(four.gateway)))
      if (isPublic && textOf(six.gateway)) routes.push(route('', textOf(six.gateway)))
      return [declaredLink(link.name, { addresses, routes })]
    })
    const hostname = textOf(droplet.hostname)
    const id = textOf(droplet.droplet_id)
    const reserved = mappingOf(mappingOf(droplet.reserved_ip ?? droplet.floating_ip).ipv4)
    return platformNetwork(
      {
        links,
        hostname,
        nameServers: textsOf(mappingOf(droplet.dns).nameservers),
        externalIPs: [...listOf(outer).map((nic) => textOf(mappingOf(nic.ipv4).ip_address)), textOf(reserved.ip_address)],
        metadata: metadataOf({
          platform: 'digital-ocean',
          hostname,
          region: textOf(droplet.region),
          instanceId: id,
          providerId: id && `digitalocean://${id}`,
        }),
      },
      known,
    )
  },
  async userData({ fetch }) {
    return (await fetch(`${base}/user-data`)) || undefined
  },
}
