import { stringify } from 'yaml'
import type { Deadline } from '../../../cosi/clock.ts'
import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Store } from '../../../cosi/store.ts'
import { pause } from '../../../timing/pause.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { formatIp, parseIp } from '../../../wire/ip.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { SystemInformation } from '../../hardware/resources/system-information.ts'
import type { Kernel } from '../../kernel.ts'
import { MetaKey } from '../../runtime/resources/meta.ts'
import { PlatformMetadata } from '../../runtime/resources/platform-metadata.ts'
import { configOutputs } from '../config-outputs.ts'
import { routeId } from '../declared-specs.ts'
import { splitName } from '../full-name.ts'
import type { EngineSettings } from '../platform/container-engine.ts'
import type { Platform, PlatformTransport } from '../platform/platform.ts'
import { readPlatformConfig } from '../platform/platform-config.ts'
import { knownLinks } from '../platform/transport.ts'
import { AddressStatus } from '../resources/address.ts'
import { LinkStatus } from '../resources/link.ts'
import { NetworkStatus } from '../resources/network-status.ts'
import { OperatorSpec } from '../resources/operator-spec.ts'
import { PlatformConfig } from '../resources/platform-config.ts'
import { ProbeSpec } from '../resources/probe.ts'

/** META tag 10: network configuration of a machine without platform metadata. */
const networkTag = '0x0a'

/** Retry interval for platform metadata, in milliseconds. */
const retry = { first: 500, longest: 30_000 }

/** The platform a machine runs on, and how to reach it. */
export interface PlatformDependencies {
  readonly platform: Platform | undefined
  readonly store: Pick<Store, 'list'>
  open(signal: AbortSignal): PlatformTransport
}

/** Publishes the platform's network configuration: from its metadata service or, on bare metal, from META. */
export const loadPlatformConfig = ({ platform, open, store }: PlatformDependencies): Controller => {
  let found: SpecOf<typeof PlatformConfig> | undefined
  return defineController({
    name: 'network.PlatformConfigController',
    effects: 'none',
    inputs: { meta: weak(MetaKey, { id: networkTag }), links: weak(LinkStatus), firmware: weak(SystemInformation) },
    outputs: { config: shared(PlatformConfig) },
    reconcile({ meta, links, firmware, config, log, background }) {
      if (!platform) {
        const text = meta.get(networkTag)?.spec.value
        if (text) config.put('active', readPlatformConfig(text))
        return
      }
      if (found) config.put('active', found)
      const present = knownLinks(store).map(({ name, hardwareAddress }) => `${name} ${hardwareAddress}`)
      if (links.list().length === 0 || present.length === 0) return // no SMBIOS data and no link to query through
      // A link that appears later may be part of the answer; a serial number may hold the metadata URL.
      const serial = firmware.list()[0]?.spec.serialnumber ?? ''
      background(`read ${present.join(', ')} ${serial}`, async (signal, wake, report) => {
        const received = await withRetry(() => platform.network(open(signal)), signal, report)
        if (!received) return
        found = received
        log.info('platform network configuration received', { links: found.links.length, hostname: found.hostnames[0]?.hostname })
        wake()
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      })
    },
  })
}

/** Milliseconds in which a report of readiness is tried: a platform has given the machine up by then. */
const reportLimit = 30 * 60_000

/** Reports readiness once per boot to a platform that waits for it, as soon as the network is up, and for at most 30 minutes. */
export const reportToPlatform = ({ platform, open }: Omit<PlatformDependencies, 'store'>): Controller => {
  let reported = false
  let end: Deadline | undefined
  return defineController({
    name: 'network.PlatformReportController',
    inputs: { network: weak(NetworkStatus, { id: 'status' }) },
    outputs: {},
    reconcile({ network, log, background, clock }) {
      const { addressReady = false, connectivityReady = false } = network.get('status')?.spec ?? {}
      if (!platform?.ready || reported || !addressReady || !connectivityReady) return
      end ??= clock.deadline(reportLimit)
      const deadline = end
      background('report', async (signal, _, report) => {
        const done = await withRetry(async () => (await platform.ready?.(open(signal))) ?? 'accepted', signal, report, deadline)
        if (signal.aborted) return
        reported = true
        if (done) log.info('readiness reported to the platform')
        else log.error('readiness not reported to the platform, giving up', { limit: `${reportLimit / 60_000}m` })
      })
    },
  })
}

/** Runs `act` until it succeeds, with exponential backoff, and reports failures. Returns undefined when aborted or too late. */
async function withRetry<T>(
  act: () => Promise<T>,
  signal: AbortSignal,
  report: (error?: unknown) => void,
  end?: Deadline,
): Promise<T | undefined> {
  for (let wait = retry.first; !signal.aborted && !end?.over; wait = Math.min(retry.longest, wait * 2)) {
    try {
      const result = await act()
      report()
      return result
    } catch (error) {
      if (signal.aborted) return undefined
      report(error)
      await pause(wait, signal)
    }
  }
  return undefined
}

/** Cache of the platform's network configuration on STATE, kept over reboots. */
const keptPath = '/system/state/platform-network.yaml'

type KeptFiles = Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'>

/** Publishes the platform configuration cached at an earlier boot, until the platform answers. */
export const recallPlatformConfig = ({ files }: { files: Pick<KeptFiles, 'readTextIfThere'> }): Controller =>
  defineController({
    name: 'network.PlatformConfigLoadController',
    effects: 'none',
    inputs: { state: weak(VolumeMountStatus, { id: mountId('STATE') }) },
    outputs: { config: shared(PlatformConfig) },
    reconcile({ state, config, log }) {
      if (!state.get(mountId('STATE'))) return
      const text = files.readTextIfThere(keptPath)
      if (!text) return
      try {
        config.put('cached', readPlatformConfig(text, keptPath))
      } catch (error) {
        log.warn('read cached platform configuration failed, ignoring it', { error: messageOf(error) })
      }
    },
  })

/** Caches the platform's configuration. */
export const keepPlatformConfig = ({ files }: { files: KeptFiles }): Controller =>
  defineController({
    name: 'network.PlatformConfigStoreController',
    inputs: { state: weak(VolumeMountStatus, { id: mountId('STATE') }), config: weak(PlatformConfig, { id: 'active' }) },
    outputs: {},
    async reconcile({ state, config, log }) {
      const active = config.get('active')?.spec
      if (!active || !state.get(mountId('STATE'))) return
      const text = stringify(active)
      if (files.readTextIfThere(keptPath) === text) return
      await files.writeAtomic(keptPath, text, { mode: 0o600 })
      log.debug('platform configuration cached', { path: keptPath })
    },
  })

/** Declares the platform's settings in their layer above the command line; in a container also what its engine started it with. */
export const applyPlatformConfig = (platform: string, given?: EngineSettings): Controller =>
  defineController({
    name: 'network.PlatformConfigApplyController',
    inputs: { config: weak(PlatformConfig) },
    outputs: {
      ...configOutputs,
      operator: shared(OperatorSpec, 'network-config'),
      probe: shared(ProbeSpec, 'network-config'),
      external: shared(AddressStatus),
      metadata: exclusive(PlatformMetadata),
    },
    reconcile({ config, address, link, route, hostname, resolver, timeServer, operator, probe, external, metadata }) {
      const found = (config.get('active') ?? config.get('cached'))?.spec
      if (given?.hostname) hostname.put('platform/hostname', { ...splitName(given.hostname), layer: 'platform' })
      if (given && given.nameservers.length > 0)
        resolver.put('platform/resolvers', {
          dnsServers: [...given.nameservers],
          searchDomains: [...given.searchDomains],
          layer: 'platform',
        })
      metadata.put('platformmetadata', {
        platform,
        ...(given?.hostname && { hostname: given.hostname }),
        ...(given?.instanceType && { instanceType: given.instanceType }),
        ...found?.metadata,
      })
      if (!found) return
      for (const spec of found.addresses) address.put(`platform/${spec.linkName}/${spec.address}`, spec)
      for (const spec of found.links) link.put(`platform/${spec.name}`, spec)
      for (const spec of found.routes) route.put(`platform/${routeId(spec)}`, spec)
      for (const spec of found.hostnames.slice(0, 1)) hostname.put('platform/hostname', spec)
      for (const [index, spec] of found.resolvers.entries()) resolver.put(`platform/resolvers/${index}`, spec)
      for (const [index, spec] of found.timeServers.entries()) timeServer.put(`platform/timeservers/${index}`, spec)
      for (const spec of found.operators) operator.put(`platform/${spec.operator}/${spec.linkName}`, spec)
      for (const [index, spec] of (found.probes ?? []).entries()) probe.put(`platform/probes/${index}`, spec)
      for (const ip of found.externalIPs) {
        const whole = prefixOf(ip)
        if (whole) external.put(`external/${whole.address}`, { ...whole, linkIndex: 0, linkName: 'external', ...plainAddress })
      }
    },
  })

const plainAddress = { scope: 'global', flags: 'permanent', priority: 0 }

function prefixOf(ip: string): { address: string; family: string } | undefined {
  const bytes = parseIp(ip)
  return bytes && { address: `${formatIp(bytes)}/${bytes.length * 8}`, family: bytes.length === 4 ? 'inet4' : 'inet6' }
}
