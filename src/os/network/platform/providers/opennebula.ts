/** OpenNebula: a disk labelled CONTEXT with shell variables for each interface. */
import { declaredLink } from '../../link/declared.ts'
import { dhcp, linkWith, platformNetwork, route, withMask } from '../declare.ts'
import { metadataOf, mtuOf } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'

const labels = ['CONTEXT', 'CDROM']
const file = 'context.sh'

/** Parses `NAME='value'` lines. Values may span several lines. */
export function readContext(text: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [, name = '', single, double, bare] of text.matchAll(/^([A-Z][A-Z0-9_]*)=(?:'((?:[^']|'\\'')*)'|"([^"]*)"|(\S*))[ \t]*$/gm))
    found[name] = single?.replaceAll(`'\\''`, "'") ?? double ?? bare ?? ''
  return found
}

async function context({ disk }: Pick<PlatformTransport, 'disk'>): Promise<Record<string, string>> {
  const files = await disk(labels, [file])
  const text = files?.get(file)
  if (text === undefined) throw new Error('opennebula: no disk labelled "CONTEXT" with a context.sh')
  return readContext(text)
}

export const opennebula: Platform = {
  async network(transport) {
    const given = await context(transport)
    const nics = Object.keys(given).flatMap((key) => /^(ETH\d+)_MAC$/.exec(key)?.[1] ?? [])
    const links = nics.flatMap((nic) => {
      const get = (key: string) => given[`${nic}_${key}`] ?? ''
      const link = linkWith(get('MAC'), transport.links)
      if (!link || get('METHOD') === 'skip') return []
      const dhcp4On = get('METHOD') === 'dhcp'
      const dhcp6On = get('IP6_METHOD') === 'dhcp'
      const addresses = [
        ...(!dhcp4On && get('IP') ? [{ address: withMask(get('IP'), get('MASK') || '255.255.255.0') }] : []),
        ...(!dhcp6On && get('IP6') ? [{ address: withMask(get('IP6'), get('IP6_PREFIX_LENGTH') || '64') }] : []),
      ]
      const gateways = [dhcp4On ? '' : get('GATEWAY'), dhcp6On ? '' : get('IP6_GATEWAY') || get('GATEWAY6')].filter((one) => one !== '')
      return [
        declaredLink(link.name, {
          mtu: mtuOf(get('MTU')),
          addresses,
          routes: gateways.map((gateway) => route('', gateway, Number(get('METRIC')) || undefined)),
          ...(dhcp4On && { dhcp4: dhcp }),
          ...(dhcp6On && { dhcp6: dhcp }),
        }),
      ]
    })
    const words = (suffix: string) =>
      [given[suffix] ?? '', ...nics.map((nic) => given[`${nic}_${suffix}`] ?? '')].flatMap((text) => text.split(/\s+/))
    const hostname = given.SET_HOSTNAME || given.HOSTNAME || given.NAME || ''
    const metadata = metadataOf({
      platform: 'opennebula',
      hostname,
      instanceId: given.VMID ?? '',
      providerId: given.VMID ? `one://${given.VMID}` : '',
    })
    return platformNetwork({ links, hostname, nameServers: words('DNS'), searchDomains: words('SEARCH_DOMAIN'), metadata }, transport.links)
  },
  async userData(transport) {
    const { USER_DATA, USERDATA_ENCODING, USER_DATA_ENCODING } = await context(transport)
    if (!USER_DATA) return undefined
    return (USER_DATA_ENCODING ?? USERDATA_ENCODING) === 'base64' ? Buffer.from(USER_DATA, 'base64').toString() : USER_DATA
  },
}
