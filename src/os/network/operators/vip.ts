import { messageOf } from '../../../wire/error-message.ts'
import { hostPrefix, isIPv6 } from '../../../wire/prefix.ts'
import type { Elect } from '../../area.ts'
import type { Kernel } from '../../kernel.ts'
import type { Findings, Operator } from './operator.ts'

const retryInterval = 1000
/** Time for a link to remove an address, in milliseconds; well below the remaining time of the election's lease. */
const longestRemoval = 2000
const never = new AbortController().signal
/** Delays before repeated announcements, for stations that missed the first (RFC 5227 2.3 requires two). */
const announcements = [50, 1000, 3000]

/** Assigns the shared address to the elected control plane node and announces it on the link. */
export const vipOperator =
  (packets: Pick<Kernel['packet'], 'announce'>, elect: Elect): Operator =>
  async ({ spec, link, signal, log, clock, report, present }) => {
    if (!spec.vip) throw new TypeError('an operator of a shared address without its settings')
    const { ip, gratuitousARP } = spec.vip
    const six = isIPv6(ip)
    const address = hostPrefix(ip)
    const findings: Findings = {
      addresses: [
        {
          address,
          linkName: spec.linkName,
          family: six ? 'inet6' : 'inet4',
          scope: 'global',
          flags: six ? 'nodad,permanent' : 'permanent', // the election rules out duplicates
          announceWithARP: true,
          layer: 'operator',
        },
      ],
      routes: [],
      nameServers: [],
      searchDomains: [],
      timeServers: [],
    }
    let reason = ''
    while (!signal.aborted) {
      try {
        await elect(
          `talos:v1:vip:election:${ip}`,
          async (holding) => {
            reason = ''
            log.info('acquired shared address', { address: ip })
            report(findings)
            if (gratuitousARP || six)
              for (const delay of announcements) {
                await clock.sleep(delay, holding)
                if (!holding.aborted) packets.announce(link, ip)
              }
            while (!holding.aborted) await clock.sleep(3_600_000, holding)
            // No other node is elected before this returns, so the link must have removed the address by then.
            report(undefined)
            const deadline = clock.now() + longestRemoval
            while (present(address) && clock.now() < deadline) await clock.sleep(10, never)
          },
          signal,
        )
      } catch (error) {
        const message = messageOf(error)
        if (!signal.aborted && message !== reason) log.debug('shared address election waiting', { address: ip, reason: message })
        reason = message
      } finally {
        report(undefined)
      }
      if (!signal.aborted) await clock.sleep(retryInterval, signal)
    }
  }
