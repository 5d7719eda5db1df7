/** Oracle Cloud: instance metadata. The first VNIC uses DHCP, the others have static addresses. */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { mappingOf, metadataOf, mtuOf, readJson, readJsonList, textOf, textsOf, unwrapped } from '../loose.ts'
import type { Platform } from '../platform.ts'

const base = 'http://169.254.169.254/opc/v2'
const headers = { authorization: 'Bearer Oracle' }
/** Route metric of secondary VNICs. */
const secondMetric = 2048

const length = (subnet: string) => subnet.split('/')[1]

export const oracle: Platform = {
  async network({ fetch, links: known }) {
    const instance = readJson((await fetch(`${base}/instance/`, { headers })) ?? '{}', 'oracle metadata: instance')
    const cards = readJsonList((await fetch(`${base}/vnics/`, { headers })) ?? '[]', 'oracle metadata: vnics')
    const links = cards.flatMap((card, place) => {
      const link = linkWith(card.macAddr, known)
      if (!link) return []
      const own = textOf(card.privateIp)
      const subnet = textOf(card.subnetCidrBlock)
      const gateway = textOf(card.virtualRouterIp)
      const sixes = textsOf(card.ipv6Addresses)
      const told = place > 0 && own !== ''
      return [
        declaredLink(link.name, {
          mtu: mtuOf(card.mtu),
          addresses: told ? [{ address: withMask(own, length(subnet)) }] : [],
          routes: told && gateway ? [route('', gateway, secondMetric)] : [],
          ...(told ? {} : { dhcp4: dhcp }),
          ...(sixes.length > 0 ? { dhcp6: dhcp } : {}),
        }),
      ]
    })
    const hostname = textOf(instance.hostname) || textOf(instance.displayName)
    const id = textOf(instance.id)
    return platformNetwork(
      {
        links,
        hostname,
        metadata: metadataOf({
          platform: 'oracle',
          hostname,
          region: (textOf(instance.canonicalRegionName) || textOf(instance.region)).toLowerCase(),
          zone: textOf(instance.availabilityDomain).replace(':', '-').toLowerCase(),
          instanceType: textOf(instance.shape),
          instanceId: id,
          providerId: id && `oci://${id}`,
        }),
      },
      known,
    )
  },
  async userData({ fetch }) {
    const instance = readJson((await fetch(`${base}/instance/`, { headers })) ?? '{}', 'oracle metadata: instance')
    const data = textOf(mappingOf(instance.metadata).user_data)
    return data ? unwrapped(data) : undefined
  },
}
