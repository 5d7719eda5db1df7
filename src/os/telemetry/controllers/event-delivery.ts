import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { DeliveryStatus } from '../resources/delivery-status.ts'
import { EventSinkConfig } from '../resources/event-sink-config.ts'
import { Destinations, reportInterval } from '../shipping/destinations.ts'
import { deliverEvents, EventPosition } from '../shipping/event-delivery.ts'

/** Sends the machine's events, from the oldest one kept on, to the event sink. */
export const sendEvents = ({
  events,
  outbound,
  log,
  clock,
  deliveries,
}: Pick<Machine, 'events' | 'outbound' | 'log' | 'clock' | 'deliveries'>): Controller => {
  const destinations = new Destinations('events', clock, () => new EventPosition(events))
  deliveries.add(destinations)
  return defineController({
    name: 'v1alpha1.EventsSinkController',
    inputs: { sinks: weak(EventSinkConfig, { id: 'event-sink' }), network: weak(NetworkStatus, { id: 'status' }) },
    outputs: { statuses: shared(DeliveryStatus) },
    reconcile({ sinks, network, statuses, background, wakeIn }) {
      if (!network.get('status')?.spec.addressReady) return
      const endpoint = sinks.get('event-sink')?.spec.endpoint
      destinations.retain(new Set(endpoint ? [endpoint] : []))
      if (!endpoint) return
      const destination = destinations.get(endpoint)
      const { reader, counts } = destination
      background(endpoint, (signal) => deliverEvents(endpoint, reader, { log, outbound, counts }, signal))
      statuses.put(`events/${endpoint}`, destinations.status(destination))
      wakeIn(reportInterval)
    },
  })
}
