/** Microsoft Azure: the instance metadata service, and the wire server that waits for a health report. */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, dhcpAt, linkWith, platformNetwork } from '../declare.ts'
import { listOf, mappingOf, metadataOf, readJson, readJsonList, textOf, unwrapped } from '../loose.ts'
import type { Platform } from '../platform.ts'

const base = 'http://169.254.169.254/metadata'
const version = 'api-version=2021-12-13'
const headers = { metadata: 'true' }

/** The wire server (fabric). It treats a machine without a health report as failed. */
const fabric = 'http://168.63.129.16/machine'
const agent = { 'x-ms-version': '2012-11-30', 'x-ms-agent-name': 'Ichor' }

/** The file that describes a new machine, on a medium in its optical drive. */
const provisioning = 'ovf-env.xml'

export const azure: Platform = {
  async network({ fetch, links: known }) {
    const computeText = await fetch(`${base}/instance/compute?${version}&format=json`, { headers })
    const nicsText = await fetch(`${base}/instance/network/interface?${version}&format=json`, { headers })
    // Only a standard load balancer publishes metadata.
    const balancerText = await fetch(`${base}/loadbalancer?${version}&format=json`, { headers })
    const compute = readJson(computeText ?? '{}', 'azure metadata: compute')
    const nics = readJsonList(nicsText ?? '[]', 'azure metadata: network')
    const balancer = mappingOf(balancerText && readJson(balancerText, 'azure metadata: load balancer').loadbalancer)
    const links = nics.flatMap((nic, place) => {
      const link = linkWith(nic.macAddress, known)
      if (!link) return []
      const six = listOf(mappingOf(nic.ipv6).ipAddress).some((one) => textOf(one.privateIpAddress) !== '')
      return [declaredLink(link.name, { dhcp4: dhcpAt(dhcp.routeMetric * (place + 1)), ...(six && { dhcp6: dhcp }) })]
    })
    const publicOf = (nic: (typeof nics)[number]) =>
      [nic.ipv4, nic.ipv6].flatMap((family) => listOf(mappingOf(family).ipAddress).map((one) => textOf(one.publicIpAddress)))
    const hostname = textOf(mappingOf(compute.osProfile).computerName) || textOf(compute.name)
    const resource = textOf(compute.resourceId)
    return platformNetwork(
      {
        links,
        hostname,
        externalIPs: [...nics.flatMap(publicOf), ...listOf(balancer.publicIpAddresses).map((one) => textOf(one.frontendIpAddress))],
        metadata: metadataOf({
          platform: 'azure',
          hostname,
          region: textOf(compute.location).toLowerCase(),
          zone: textOf(compute.zone) || textOf(compute.platformFaultDomain),
          instanceType: textOf(compute.vmSize),
          instanceId: resource,
          providerId: resource && `azure://${resource}`,
          spot: textOf(compute.evictionPolicy) !== '' || textOf(compute.priority).toLowerCase() === 'spot',
          tags: tagsOf(compute.tagsList),
        }),
      },
      known,
    )
  },
  async userData({ fetch, optical }) {
    const custom = customData((await optical('udf', [provisioning]))?.get(provisioning) ?? '')
    if (custom) return custom
    const text = await fetch(`${base}/instance/compute/userData?${version}&format=text`, { headers })
    return text ? unwrapped(text) : undefined
  },
  async ready({ fetch }) {
    const state = (await fetch(`${fabric}/?comp=goalstate`, { headers: agent })) ?? ''
    const part = (name: string) => {
      const [, after = ''] = state.split(`<${name}>`, 2)
      const [value = ''] = after.split(`</${name}>`, 1)
      if (!/^[^<>]{1,256}$/.test(value)) throw new Error(`read azure goal state: missing ${name}`)
      return value
    }
    const instance = `<Role><InstanceId>${part('InstanceId')}</InstanceId><Health><State>Ready</State></Health></Role>`
    const container = `<ContainerId>${part('ContainerId')}</ContainerId><RoleInstanceList>${instance}</RoleInstanceList>`
    const body = `<?xml version="1.0" encoding="utf-8"?>
<Health><GoalStateIncarnation>${part('Incarnation')}</GoalStateIncarnation><Container>${container}</Container></Health>`
    const reported = await fetch(`${fabric}?comp=health`, {
      method: 'POST',
      headers: { ...agent, 'content-type': 'text/xml; charset=utf-8' },
      body,
    })
    if (reported === undefined) throw new Error('report readiness to azure: the fabric accepts no reports')
  },
}

/** The custom data of the provisioning medium, `CustomData` of `LinuxProvisioningConfigurationSet`, in base64. */
function customData(text: string): string | undefined {
  const [, base64 = ''] = /<(?:\w{1,32}:)?CustomData>([A-Za-z0-9+/=\s]*)<\//.exec(text) ?? []
  return Buffer.from(base64, 'base64').toString() || undefined
}

function tagsOf(list: unknown): Record<string, string> | undefined {
  const tags = listOf(list).map(({ name, value }) => [textOf(name), textOf(value)] as const)
  return tags.length > 0 ? Object.fromEntries(tags) : undefined
}
