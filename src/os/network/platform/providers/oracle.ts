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
    const nics = readJsonList((await fetch(`${base}/vnics/`, { headers })) ?? '[]', 'oracle metadata: vnics')
    const links = nics.flatMap((nic, place) => {
      const link = linkWith(nic.macAddr, known)
      if (!link) return []
      const own = textOf(nic.privateIp)
      const subnet = textOf(nic.subnetCidrBlock)
      const gateway = textOf(nic.virtualRouterIp)
      const sixes = textsOf(nic.ipv6Addresses)
      const isStatic = place > 0 && own !== ''
      return [
        declaredLink(link.name, {
          mtu: mtuOf(nic.mtu),
          addresses: isStatic ? [{ address: withMask(own, length(subnet)) }] : [],
          routes: isStatic && gateway ? [route('', gateway, secondMetric)] : [],
          ...(!isStatic && { dhcp4: dhcp }),
          ...(sixes.length > 0 && { dhcp6: dhcp }),
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
