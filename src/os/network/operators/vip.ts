import type { Kernel } from '../../kernel.ts'
import type { Findings, Operator } from './operator.ts'

/**
 * Lets `act` run while this machine, of all that ask under the name, is the one; `act`'s signal fires before another can
 * be. Rejects when it is not known who is.
 */
export type Elect = (name: string, act: (holding: AbortSignal) => Promise<void>, signal: AbortSignal) => Promise<void>

const again = 1000
/** How long a link may take to let go of an address, in milliseconds; well below the rest of an election's lease. */
const longestFarewell = 2000
const never = new AbortController().signal
/** Stations that slept through the first announcement hear another (RFC 5227 2.3 asks for two). */
const announcements = [50, 1000, 3000]

/** An address that the elected one of the control planes has, and tells its link of. */
export const vipOperator =
  (packets: Pick<Kernel['packet'], 'announce'>, elect: Elect): Operator =>
  async ({ spec, link, signal, log, clock, tell, present }) => {
    const { ip, gratuitousARP } = spec.vip!
    const six = ip.includes(':')
    const address = `${ip}/${six ? 128 : 32}`
    const findings: Findings = {
      addresses: [
        {
          address,
          linkName: spec.linkName,
          family: six ? 'inet6' : 'inet4',
          scope: 'global',
          flags: six ? 'nodad,permanent' : 'permanent', // an election says that nobody else has it
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
          `talos:vip:election:${ip}`,
          async (holding) => {
            reason = ''
            log.info('taking the shared address', { address: ip })
            tell(findings)
            if (gratuitousARP || six)
              for (const pause of announcements) {
                await clock.sleep(pause, holding)
                if (!holding.aborted) packets.announce(link, ip)
              }
            while (!holding.aborted) await clock.sleep(3_600_000, holding)
            // Nobody else is elected before this returns: the link must have let go of the address by then.
            tell(undefined)
            const patience = clock.now() + longestFarewell
            while (present(address) && clock.now() < patience) await clock.sleep(10, never)
          },
          signal,
        )
      } catch (error) {
        const said = error instanceof Error ? error.message : String(error)
        if (!signal.aborted && said !== reason) log.debug('the election of the shared address waits', { address: ip, reason: said })
        reason = said
      } finally {
        tell(undefined)
      }
      if (!signal.aborted) await clock.sleep(again, signal)
    }
  }
