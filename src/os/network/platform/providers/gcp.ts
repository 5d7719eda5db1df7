/** Google Compute Engine: the metadata server; one request returns the whole instance. */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, dhcpAt, linkWith, platformNetwork } from '../declare.ts'
import { listOf, mappingOf, metadataOf, mtuOf, readJson, textOf, textsOf } from '../loose.ts'
import type { Platform } from '../platform.ts'

const base = 'http://169.254.169.254/computeMetadata/v1'
const headers = { 'metadata-flavor': 'Google' }
/** The metadata server is also an NTP server, with smeared leap seconds. */
const timeServer = 'metadata.google.internal'

const last = (path: unknown) => textOf(path).split('/').at(-1) ?? ''

export const gcp: Platform = {
  async network({ fetch, links: known }) {
    const instance = readJson((await fetch(`${base}/instance/?recursive=true&alt=json`, { headers })) ?? '{}', 'gcp metadata: instance')
    const project = (await fetch(`${base}/project/project-id`, { headers }))?.trim() ?? ''
    const nics = listOf(instance.networkInterfaces)
    const links = nics.flatMap((nic, place) => {
      const link = linkWith(nic.mac, known)
      if (!link) return []
      const six = textsOf(nic.ipv6).length > 0 || textOf(nic.dhcpv6Refresh) !== ''
      return [
        declaredLink(link.name, {
          mtu: mtuOf(nic.mtu),
          dhcp4: dhcpAt(dhcp.routeMetric * (place + 1)),
          ...(six && { dhcp6: dhcp }),
        }),
      ]
    })
    const hostname = textOf(instance.hostname)
    const zone = last(instance.zone)
    const name = textOf(instance.name) || (hostname.split('.')[0] ?? '')
    const { preemptible, provisioningModel } = mappingOf(instance.scheduling)
    return platformNetwork(
      {
        links,
        hostname,
        timeServers: [timeServer],
        externalIPs: nics.flatMap((nic) => [
          ...listOf(nic.accessConfigs).map(({ externalIp }) => textOf(externalIp)),
          ...listOf(nic.ipv6AccessConfigs).map(({ externalIpv6 }) => textOf(externalIpv6)),
        ]),
        metadata: metadataOf({
          platform: 'gcp',
          hostname,
          region: zone.slice(0, Math.max(0, zone.lastIndexOf('-'))),
          zone,
          instanceType: last(instance.machineType),
          instanceId: textOf(instance.id),
          providerId: project && `gce://${project}/${zone}/${name}`,
          spot: textOf(preemptible).toUpperCase() === 'TRUE' || textOf(provisioningModel).toUpperCase() === 'SPOT',
        }),
      },
      known,
    )
  },
  async userData({ fetch }) {
    return (await fetch(`${base}/instance/attributes/user-data`, { headers })) || undefined
  },
}
