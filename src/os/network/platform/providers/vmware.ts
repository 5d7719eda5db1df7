/** VMware: guestinfo values of the hypervisor, or properties of the OVF environment (DSP0243, 11) that vSphere has among them. */
import { gunzipSync } from 'node:zlib'
import { platformNetwork } from '../declare.ts'
import { mappingOf, metadataOf, textOf, unwrapped } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'
import { PlatformConfigError, parseMapping } from '../platform-config.ts'
import { readNetworkConfig } from './nocloud.ts'

const longest = 4 << 20

type Guest = Pick<PlatformTransport, 'guestinfo'>

/** The first of several values that is set; those of the keys come before the properties of the environment. */
async function first(guest: Guest, ...keys: string[]): Promise<string | undefined> {
  for (const key of keys) {
    const value = await read(guest, key)
    if (value) return value
  }
  const environment = await guest.guestinfo('guestinfo.ovfenv')
  const properties = environment ? readOvfEnvironment(environment) : new Map<string, string>()
  return keys.map((key) => properties.get(key)).find((value) => value)
}

const attributesOf = (text: string): Map<string, string> =>
  new Map([...` ${text}`.matchAll(/\s(?:[\w.-]{1,64}:)?([\w.-]{1,256})="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))

/** Properties by key, decoded. Throws PlatformConfigError. */
export function readOvfEnvironment(text: string): Map<string, string> {
  if (text.length > longest) throw new PlatformConfigError(`guestinfo.ovfenv: ${text.length} characters exceed the limit`)
  const properties = new Map<string, string>()
  for (const [, attributes = ''] of text.matchAll(/<(?:[\w.-]+:)?Property\s([^<>]*)>/g)) {
    const found = attributesOf(attributes)
    const key = found.get('key')
    if (key) properties.set(key, unwrapped(unescaped(found.get('value') ?? '')))
  }
  return properties
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", '#10': '\n', '#xA': '\n' }

/** Text without the entities of XML (XML 1.0, 4.6). */
const unescaped = (text: string): string => text.replaceAll(/&([a-z]{2,4}|#10|#xA);/g, (whole, name: string) => entities[name] ?? whole)

/** Reads and decodes a value; `<key>.encoding` names its encoding. */
async function read({ guestinfo }: Guest, key: string): Promise<string | undefined> {
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
    const text = await first(transport, 'metadata')
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
    return first(transport, 'talos.config', 'userdata')
  },
}
