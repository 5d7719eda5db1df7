import { messageOf } from '../../../wire/error-message.ts'
import { hostPrefix, isIPv6 } from '../../../wire/prefix.ts'
import type { Elect } from '../../area.ts'
import type { Kernel } from '../../kernel.ts'
import type { CloudAddresses } from './cloud/clouds.ts'
import type { Findings, Operator } from './operator.ts'

const retryInterval = 1000
/** Time for a link to remove an address, in milliseconds; well below the remaining time of the election's lease. */
const longestRemoval = 2000
const never = new AbortController().signal
/** Delays before repeated announcements, for stations that missed the first (RFC 5227 2.3 requires two). */
const announcements = [50, 1000, 3000]

/** Time for the API of a cloud to move an address, in milliseconds. */
const longestMove = 60_000
/** The delay after a cloud did not move the address: its API counts requests. */
const cloudRetryInterval = 10_000

/** Assigns the shared address to the elected control plane node: the API of its cloud moves it there, or the link announces it. */
export const vipOperator =
  (packets: Pick<Kernel['packet'], 'announce'>, elect: Elect, clouds: CloudAddresses): Operator =>
  async ({ spec, link, signal, log, clock, report, present, problem }) => {
    if (!spec.vip) throw new TypeError('an operator of a shared address without its settings')
    const { ip } = spec.vip
    const cloud = clouds(spec.vip)
    const announced = !cloud && (spec.vip.gratuitousARP || isIPv6(ip))
    const address = hostPrefix(ip)
    const findings = onLink(address, spec.linkName, announced)
    const act = async (holding: AbortSignal) => {
      await cloud?.take(AbortSignal.any([holding, AbortSignal.timeout(longestMove)])).catch((error) => {
        throw new CloudError(error)
      })
      problem()
      log.info('acquired shared address', { address: ip })
      report(findings)
      if (announced)
        for (const delay of announcements) {
          await clock.sleep(delay, holding)
          if (!holding.aborted) packets.announce(link, ip)
        }
      while (!holding.aborted) await clock.sleep(3_600_000, holding)
      // No other node is elected before this returns, so the link must have removed the address by then.
      report(undefined)
      const deadline = clock.now() + longestRemoval
      while (present(address) && clock.now() < deadline) await clock.sleep(10, never)
      // The next owner takes the address from this machine in any case.
      await cloud
        ?.release(AbortSignal.timeout(longestRemoval))
        .catch((error) => log.warn('shared address not given back', failed(ip, error)))
    }
    let reason = ''
    while (!signal.aborted) {
      let delay = retryInterval
      try {
        await elect(`talos:v1:vip:election:${ip}`, act, signal)
        reason = ''
      } catch (error) {
        if (error instanceof CloudError) delay = cloudRetryInterval
        const message = messageOf(error)
        if (error instanceof CloudError && !signal.aborted) problem(error)
        else if (!signal.aborted && message !== reason) log.debug('shared address election waiting', { address: ip, reason: message })
        reason = message
      } finally {
        report(undefined)
      }
      if (!signal.aborted) await clock.sleep(delay, signal)
    }
  }

/** The cloud did not give the address to the elected node, which leaves it to another one. */
class CloudError extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause })
  }
}

const failed = (address: string, error: unknown) => ({ address, error: messageOf(error) })

const onLink = (address: string, linkName: string, announced: boolean): Findings => ({
  addresses: [
    {
      address,
      linkName,
      family: isIPv6(address) ? 'inet6' : 'inet4',
      scope: 'global',
      flags: isIPv6(address) ? 'nodad,permanent' : 'permanent', // the election rules out duplicates
      announceWithARP: announced,
      layer: 'operator',
    },
  ],
  routes: [],
  nameServers: [],
  searchDomains: [],
  timeServers: [],
})
