import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { DeliveryStatus } from '../resources/delivery-status.ts'
import { LogDestination } from '../resources/log-destination.ts'
import { Destinations, reportInterval } from '../shipping/destinations.ts'
import { dropReporter } from '../shipping/drop-reporter.ts'
import { endpointOf } from '../shipping/endpoint.ts'
import { LogFeed } from '../shipping/log-feed.ts'
import { type ShippingDependencies, ship } from '../shipping/ship.ts'

/** Bytes of a datagram with some room for its headers: 65,507 are the most over IPv4. */
const longestDatagram = 65_000

interface Dependencies extends ShippingDependencies, Pick<Machine, 'logFiles' | 'deliveries'> {
  readonly supervisor: { readonly logs: Machine['supervisor']['logs'] }
}

/** Sends the logs of all services, from the oldest line in memory on, to every destination. */
export const deliverLogs = (machine: Dependencies): Controller => {
  const {
    supervisor: { logs },
    logFiles,
    log,
    clock,
  } = machine
  const tags = new Map<string, Readonly<Record<string, string>>>()
  const all = () => [...logs.entries(), ['kernel', logFiles.kernel] as const]
  const subscribe = (listener: () => void) => {
    const stops = [logs.subscribe(listener), logFiles.onKernelWrite(listener)]
    return () => {
      for (const stop of stops) stop()
    }
  }
  const destinations = new Destinations('logs', clock, (counts, id) => {
    const { protocol } = endpointOf(id.split(' ')[0] ?? '')
    return new LogFeed({
      logs: all,
      subscribe,
      files: logFiles,
      tags: () => tags.get(id) ?? {},
      now: () => clock.now(),
      dropped: dropReporter(counts, log, clock),
      ...(protocol === 'udp' && { longestMessage: longestDatagram }),
    })
  })
  machine.deliveries.add(destinations)
  return defineController({
    name: 'runtime.LogDeliveryController',
    inputs: { destinations: weak(LogDestination), network: weak(NetworkStatus, { id: 'status' }) },
    outputs: { statuses: shared(DeliveryStatus) },
    reconcile({ destinations: configured, network, statuses, background, wakeIn }) {
      if (!network.get('status')?.spec.addressReady) return
      const present = configured.list()
      destinations.retain(new Set(present.map(({ metadata }) => metadata.id)))
      for (const {
        metadata: { id },
        spec,
      } of present) {
        tags.set(id, spec.extraTags)
        const endpoint = endpointOf(spec.endpoint)
        const destination = destinations.get(id, endpoint.url)
        background(id, (signal) => ship(machine, endpoint, destination, signal))
        statuses.put(`logs/${id}`, destinations.status(destination))
      }
      if (present.length > 0) wakeIn(reportInterval)
    },
  })
}
