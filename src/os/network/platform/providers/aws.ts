/** Amazon EC2: instance metadata service version 2 (session token first, which prevents SSRF). */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, dhcpAt, linkWith, platformNetwork } from '../declare.ts'
import { metadataOf } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'

/** The service by IPv4, and by IPv6 where an instance has that alone. */
const addresses = ['169.254.169.254', '[fd00:ec2::254]']

async function reader({ fetch }: Pick<PlatformTransport, 'fetch'>) {
  const sessions = addresses.map(async (address) => {
    const base = `http://${address}/latest`
    return [
      base,
      await fetch(`${base}/api/token`, { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' } }),
    ] as const
  })
  const [base, token] = await Promise.any(sessions).catch(() => sessions[0] as (typeof sessions)[number])
  const headers: Record<string, string> = token ? { 'x-aws-ec2-metadata-token': token.trim() } : {}
  return async (path: string) => (await fetch(`${base}/${path}`, { headers })) ?? ''
}

const lines = (text: string) => text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]))

export const aws: Platform = {
  async network(transport) {
    const read = await reader(transport)
    const meta = async (path: string) => (await read(`meta-data/${path}`)).trim()
    const [hostname, instanceType, instanceId, region, zone, lifeCycle, internalDNS, externalDNS, ip4 = '', ip6 = ''] = await Promise.all(
      [
        'hostname',
        'instance-type',
        'instance-id',
        'placement/region',
        'placement/availability-zone',
        'instance-life-cycle',
        'local-hostname',
        'public-hostname',
        'public-ipv4',
        'ipv6',
      ].map(meta),
    )
    const links = []
    for (const entry of lines(await meta('network/interfaces/macs/')).slice(0, 64)) {
      const mac = entry.replace(/\/$/, '')
      const link = linkWith(mac, transport.links)
      if (!link) continue
      const place = Number(await meta(`network/interfaces/macs/${mac}/device-number`)) || 0
      const six = (await meta(`network/interfaces/macs/${mac}/ipv6s`)) !== ''
      // The first interface's routes are preferred; those of others have a higher metric.
      links.push(declaredLink(link.name, { dhcp4: dhcpAt(dhcp.routeMetric * (place + 1)), ...(six && { dhcp6: dhcp }) }))
    }
    const tags: Record<string, string> = {}
    for (const key of lines(await meta('tags/instance')).slice(0, 64)) tags[key] = await meta(`tags/instance/${encodeURIComponent(key)}`)
    return platformNetwork(
      {
        links,
        hostname,
        externalIPs: [ip4, ip6],
        metadata: metadataOf({
          platform: 'aws',
          hostname,
          region,
          zone,
          instanceType,
          instanceId,
          providerId: instanceId && `aws:///${zone}/${instanceId}`,
          spot: lifeCycle === 'spot',
          internalDNS,
          externalDNS,
          tags: Object.keys(tags).length > 0 ? tags : undefined,
        }),
      },
      transport.links,
    )
  },
  async userData(transport) {
    return (await (await reader(transport))('user-data')) || undefined
  },
}
