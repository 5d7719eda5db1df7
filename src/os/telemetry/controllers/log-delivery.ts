import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { DeliveryStatus } from '../resources/delivery-status.ts'
import { LogDestination } from '../resources/log-destination.ts'
import { Destinations, reportInterval } from '../shipping/destinations.ts'
import { dropReporter } from '../shipping/drop-reporter.ts'
import { endpointOf } from '../shipping/endpoint.ts'
import { LogFeed } from '../shipping/log-feed.ts'
import { type NodeLogs, nodeLogs } from '../shipping/node-logs.ts'
import { type ShippingDependencies, ship } from '../shipping/ship.ts'

/** Bytes of a datagram with some room for its headers: 65,507 are the most over IPv4. */
const longestDatagram = 65_000

interface Dependencies extends ShippingDependencies, NodeLogs, Pick<Machine, 'deliveries'> {}

/** Sends the logs of all services, from the oldest line in memory on, to every destination. */
export const deliverLogs = (machine: Dependencies): Controller => {
  const { log, clock } = machine
  const tags = new Map<string, Readonly<Record<string, string>>>()
  const destinations = new Destinations('logs', clock, (counts, id) => {
    const { protocol } = endpointOf(id.split(' ')[0] ?? '')
    return new LogFeed({
      ...nodeLogs(machine),
      tags: () => tags.get(id) ?? {},
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
