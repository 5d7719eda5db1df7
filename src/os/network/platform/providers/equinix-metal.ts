/** Equinix Metal: all interfaces form one bond, which has the addresses. Private networks are routed through the private gateway. */

import { bondValues } from '../../documents/bond.ts'
import { bondOf, declaredLink } from '../../link/declared.ts'
import { linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { listOf, mappingOf, metadataOf, readJson, textOf, textsOf } from '../loose.ts'
import type { Platform } from '../platform.ts'

const base = 'https://metadata.platformequinix.com'

export const equinixMetal: Platform = {
  eventsParameter: 'em.events_url',
  async network({ fetch, links: known }) {
    const machine = readJson((await fetch(`${base}/metadata`)) ?? '{}', 'equinix metadata')
    const network = mappingOf(machine.network)
    const addresses = listOf(network.addresses).filter((one) => one.enabled !== false && textOf(one.address) !== '')
    const members = listOf(network.interfaces).flatMap(({ mac }) => linkWith(mac, known)?.name ?? [])
    const mode = bondValues.mode[Number(mappingOf(network.bonding).mode)] ?? '802.3ad'
    const inner = addresses.find((one) => one.public !== true && one.address_family === 4)
    const routes = [
      ...addresses.flatMap((one) => (one.public === true && one.management !== false ? [route('', textOf(one.gateway))] : [])),
      ...(inner ? textsOf(machine.private_subnets).map((subnet) => route(subnet, textOf(inner.gateway))) : []),
    ].filter(({ gateway }) => gateway !== '')
    const hostname = textOf(machine.hostname)
    const id = textOf(machine.id)
    const bond = bondOf({ mode, miimon: 100, updelay: 200, downdelay: 200, xmitHashPolicy: 'layer3+4', lacpRate: 'fast' })
    const links = members.length === 0 ? [] : [{ ...declaredLink('bond0'), kind: 'bond' as const, bond, members }]
    const whole = links.map((link) => ({
      ...link,
      addresses: addresses.map((one) => ({ address: withMask(textOf(one.address), textOf(one.cidr) || undefined) })),
      routes,
    }))
    return platformNetwork(
      {
        links: whole,
        hostname,
        externalIPs: addresses.flatMap((one) => (one.public === true ? [textOf(one.address)] : [])),
        metadata: metadataOf({
          platform: 'equinixMetal',
          hostname,
          region: textOf(machine.metro),
          zone: textOf(machine.facility),
          instanceType: textOf(machine.plan),
          instanceId: id,
          providerId: id && `equinixmetal://${id}`,
        }),
      },
      known,
    )
  },
  async userData({ fetch }) {
    return (await fetch(`${base}/userdata`)) || undefined
  },
}
