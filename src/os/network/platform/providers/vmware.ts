/** VMware: guestinfo values of the hypervisor. */
import { gunzipSync } from 'node:zlib'
import { platformNetwork } from '../declare.ts'
import { mappingOf, metadataOf, textOf, unwrapped } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'
import { PlatformConfigError, parseMapping } from '../platform-config.ts'
import { readNetworkConfig } from './nocloud.ts'

const longest = 4 << 20

/** Reads and decodes a value; `<key>.encoding` names its encoding. */
async function read({ guestinfo }: Pick<PlatformTransport, 'guestinfo'>, key: string): Promise<string | undefined> {
  const value = await guestinfo(`guestinfo.${key}`)
  if (!value) return undefined
  const encoding = (await guestinfo(`guestinfo.${key}.encoding`)) ?? ''
  if (/^(gz|gzip)\+(b64|base64)$/.test(encoding)) {
    try {
      return gunzipSync(Buffer.from(value, 'base64'), { maxOutputLength: longest }).toString()
    } catch {
      throw new PlatformConfigError(`guestinfo.${key}: invalid data for encoding gzip+base64`)
    }
  }
  return unwrapped(value)
}

export const vmware: Platform = {
  async network(transport) {
    const text = await read(transport, 'metadata')
    const meta = parseMapping(text?.trim() || '{}', 'guestinfo.metadata')
    const hostname = textOf(meta['local-hostname']) || textOf(meta.hostname)
    // The network is part of the metadata: as a mapping, or as text encoded like the rest.
    const within = meta.network
    const config = typeof within === 'string' ? unwrapped(within) : Object.keys(mappingOf(within)).length > 0 ? JSON.stringify(within) : ''
    const links = config ? readNetworkConfig(config, transport.links, hostname) : platformNetwork({ hostname }, transport.links)
    const metadata = metadataOf({
      platform: 'vmware',
      hostname,
      instanceId: textOf(meta['instance-id']),
      providerId: textOf(meta['provider-id']),
      region: textOf(meta.region),
      zone: textOf(meta.zone),
    })
    return { ...links, metadata }
  },
  async userData(transport) {
    return (await read(transport, 'talos.config')) ?? (await read(transport, 'userdata'))
  },
}
