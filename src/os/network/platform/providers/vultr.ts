/** Vultr: the public interface uses DHCP, private ones have static addresses. */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, linkWith, platformNetwork, withMask } from '../declare.ts'
import { listOf, mappingOf, metadataOf, readJson, textOf } from '../loose.ts'
import type { Platform } from '../platform.ts'

const base = 'http://169.254.169.254'
/** MTU of private networks. */
const privateMtu = 1450

export const vultr: Platform = {
  async network({ fetch, links: known }) {
    const instance = readJson((await fetch(`${base}/v1.json`)) ?? '{}', 'vultr metadata')
    const nics = listOf(instance.interfaces)
    const links = nics.flatMap((nic) => {
      const link = linkWith(nic.mac, known)
      if (!link) return []
      if (nic['network-type'] !== 'private') return [declaredLink(link.name, { dhcp4: dhcp })]
      const four = mappingOf(nic.ipv4)
      const six = mappingOf(nic.ipv6)
      const addresses = [
        ...(textOf(four.address) ? [{ address: withMask(textOf(four.address), four.netmask) }] : []),
        ...(textOf(six.address) ? [{ address: withMask(textOf(six.address), six.prefix) }] : []),
      ]
      return [declaredLink(link.name, { mtu: privateMtu, addresses })]
    })
    const hostname = textOf(instance.hostname)
    const id = textOf(instance['instance-v2-id']) || textOf(instance.instanceid)
    const publics = nics.filter((nic) => nic['network-type'] !== 'private')
    return platformNetwork(
      {
        links,
        hostname,
        externalIPs: publics.map((nic) => textOf(mappingOf(nic.ipv4).address)),
        metadata: metadataOf({
          platform: 'vultr',
          hostname,
          region: textOf(mappingOf(instance.region).regioncode).toLowerCase(),
          instanceId: id,
          providerId: id && `vultr://${id}`,
        }),
      },
      known,
    )
  },
  async userData({ fetch }) {
    return (await fetch(`${base}/latest/user-data`)) || undefined
  },
}
