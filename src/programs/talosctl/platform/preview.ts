/** What a machine on a platform would apply, read with the code of the machine itself. */
import { silent } from '../../../cosi/log.ts'
import { ConfigContainer } from '../../../os/config/container.ts'
import { isWhole, search } from '../../../os/config/sources/search.ts'
import type { KnownLink } from '../../../os/network/platform/declare.ts'
import type { Platform } from '../../../os/network/platform/platform.ts'
import type { PlatformNetwork } from '../../../os/network/platform/platform-config.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { type DryTransport, linksIn, type MetadataPlace, openDry } from './dry-transport.ts'

/** The machine configuration of a platform. */
export interface ConfigPreview {
  /** `partial`: valid, and the machine would wait for the rest of it. */
  readonly state: 'valid' | 'partial' | 'none' | 'invalid'
  readonly error?: string
  /** Labels of its documents. */
  readonly documents?: readonly string[]
}

/** Everything a machine would take from its platform. */
export interface PlatformPreview {
  readonly platform: string
  readonly links: readonly KnownLink[]
  readonly config: ConfigPreview
  readonly hostname: string
  readonly externalIPs: readonly string[]
  /** Undefined where it could not be read. */
  readonly network?: Omit<PlatformNetwork, 'metadata' | 'externalIPs' | 'hostnames'>
  readonly networkError?: string
  readonly metadata: NonNullable<PlatformNetwork['metadata']>
}

/** Reads a platform. Without links it has those that the metadata names. */
export async function previewPlatform(
  name: string,
  platform: Platform,
  place: MetadataPlace,
  given: readonly KnownLink[],
  signal: AbortSignal,
): Promise<PlatformPreview> {
  const open = (links: readonly KnownLink[]) => openDry(name, place, links, signal)
  const links = given.length > 0 ? given : await linksOf(platform, open([]))
  const config = await previewConfig(name, platform, open(links), signal)
  const shared = { platform: name, links, config }
  try {
    const { metadata = {}, externalIPs, hostnames, ...network } = await platform.network(open(links))
    const [first] = hostnames
    const hostname = first ? [first.hostname, first.domainname].filter((part) => part !== '').join('.') : ''
    return { ...shared, hostname, externalIPs, network, metadata }
  } catch (error) {
    return { ...shared, hostname: '', externalIPs: [], networkError: messageOf(error), metadata: {} }
  }
}

async function linksOf(platform: Platform, transport: DryTransport): Promise<KnownLink[]> {
  // Its failure, if it is one, is that of the read that follows.
  await platform.network(transport).catch(() => undefined)
  return linksIn(transport.texts)
}

/** The search of the machine, with this platform as its only source and without another attempt. */
async function previewConfig(name: string, platform: Platform, transport: DryTransport, signal: AbortSignal): Promise<ConfigPreview> {
  let failure: string | undefined
  let found: string | undefined
  await search({
    sources: [{ name, retried: false, look: () => platform.userData(transport) }],
    mode: 'metal',
    log: silent,
    events: { publish: () => {} },
    signal,
    report: (error) => {
      if (error !== undefined) failure = messageOf(error)
    },
    found: (text) => {
      found = text
    },
  })
  if (failure !== undefined) return { state: 'invalid', error: failure }
  if (found === undefined) return { state: 'none' }
  const config = ConfigContainer.parse(found)
  return { state: isWhole(config) ? 'valid' : 'partial', documents: config.documents.map(({ label }) => label) }
}
