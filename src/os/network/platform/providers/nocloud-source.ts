/** NoCloud: files on a disk labelled `cidata`, or over HTTP from a URL in the SMBIOS serial number or the command line. */
import { platformNetwork } from '../declare.ts'
import { metadataOf, textOf } from '../loose.ts'
import type { Platform, PlatformTransport } from '../platform.ts'
import { parseMapping } from '../platform-config.ts'
import { readNetworkConfig } from './nocloud.ts'

const labels = ['cidata', 'CIDATA']

type Transport = Pick<PlatformTransport, 'fetch' | 'disk' | 'serial' | 'commandLine'>

/** Parses settings like `ds=nocloud-net;s=http://10.0.0.1/;h=name;i=id` from the serial number, else from the command line. */
export function pointers(serial: string, commandLine: string): Readonly<Record<string, string>> {
  const form = /^ds=nocloud(-net)?(?=[;,]|$)/
  const found = [serial, ...commandLine.split(/\s+/)].find((text) => form.test(text))
  if (!found) return {}
  const pairs = found.split(';').flatMap((part) => {
    const equals = part.indexOf('=')
    return equals > 0 ? [[part.slice(0, equals), part.slice(equals + 1)] as const] : []
  })
  return Object.fromEntries(pairs)
}

async function read({ fetch, disk, serial, commandLine }: Transport, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { s: seed } = pointers(serial, commandLine)
  if (!seed || !/^https?:\/\//.test(seed)) {
    const files = await disk(labels, names)
    if (!files) throw new Error('nocloud: no disk labelled "cidata", and no URL in serial number or command line')
    return files
  }
  const found = new Map<string, string>()
  for (const name of names) {
    const text = await fetch(`${seed.endsWith('/') ? seed : `${seed}/`}${name}`)
    if (text !== undefined) found.set(name, text)
  }
  return found
}

export const nocloud: Platform = {
  async network(transport) {
    const files = await read(transport, ['meta-data', 'network-config'])
    const meta = parseMapping(files.get('meta-data')?.trim() || '{}', 'nocloud meta-data')
    const settings = pointers(transport.serial, transport.commandLine)
    const hostname = settings.h || textOf(meta['local-hostname']) || textOf(meta.hostname)
    const config = files.get('network-config')?.trim()
    const links = config ? readNetworkConfig(config, transport.links, hostname) : platformNetwork({ hostname }, transport.links)
    const metadata = metadataOf({
      platform: 'nocloud',
      hostname,
      instanceId: settings.i || textOf(meta['instance-id']),
      instanceType: textOf(meta['instance-type']),
      providerId: textOf(meta['provider-id']),
      region: textOf(meta.region),
      zone: textOf(meta.zone),
    })
    return { ...links, metadata }
  },
  async userData(transport) {
    return (await read(transport, ['user-data'])).get('user-data') || undefined
  },
}
