import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import type { Machine } from '../../area.ts'
import { phoneHome, platformEvent } from '../platform/phone-home.ts'
import type { Platform } from '../platform/platform.ts'
import { NetworkStatus } from '../resources/network-status.ts'

/** What reports of events need. */
export interface PlatformEventsDependencies extends Pick<Machine, 'events' | 'clock' | 'deliveries' | 'log'> {
  readonly platform: Pick<Platform, 'eventsParameter'> | undefined
  readonly commandLine: string
}

/**
 * Sends what happens on the machine to a platform that names an address for it on the kernel command line: in order, each event for at
 * most 5 minutes. A machine that stops waits for events under way as it does for other receivers.
 */
export const reportEvents = ({ platform, commandLine, events, clock, deliveries, log }: PlatformEventsDependencies): Controller => {
  const url = urlOf(platform?.eventsParameter, commandLine, log)
  let position = events.start
  let previous = ''
  if (url) deliveries.add({ waiting: () => [events.end - position] })
  return defineController({
    name: 'network.PlatformEventsController',
    inputs: { network: weak(NetworkStatus, { id: 'status' }) },
    outputs: {},
    reconcile({ network, log, background }) {
      if (!url || !network.get('status')?.spec.addressReady) return
      background('events', async (signal, _, report) => {
        for await (const { event, next } of events.after(position, signal)) {
          const reported = platformEvent(event)
          // A search for the configuration fails in the same way again and again, and a ready machine stays so.
          const same = reported && JSON.stringify(reported)
          if (reported && same !== previous)
            try {
              await phoneHome(url, reported, clock, signal)
              report()
              log.info('event reported to the platform', { type: reported.type })
            } catch (error) {
              if (signal.aborted) return
              report(error)
            }
          if (same) previous = same
          position = next
        }
      })
    },
  })
}

function urlOf(parameter: string | undefined, commandLine: string, log: Machine['log']): string | undefined {
  if (!parameter) return undefined
  const value = parameterValues(parseCommandLine(commandLine), parameter).at(-1)
  if (!value) return undefined
  if (/^https?:\/\//i.test(value) && URL.canParse(value)) return value
  log.warn('invalid kernel parameter ignored', { reason: `${parameter}: "${value}" is not an http(s) address` })
  return undefined
}
