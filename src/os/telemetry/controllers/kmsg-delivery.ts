import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import type { Kernel } from '../../kernel.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { joinUrl } from '../../url.ts'
import { DeliveryStatus } from '../resources/delivery-status.ts'
import { KmsgLogConfig } from '../resources/kmsg-log-config.ts'
import { Destinations, reportInterval } from '../shipping/destinations.ts'
import { dropReporter } from '../shipping/drop-reporter.ts'
import { endpointOf } from '../shipping/endpoint.ts'
import { KernelFeed } from '../shipping/kernel-feed.ts'
import { type ShippingDependencies, ship } from '../shipping/ship.ts'

interface Dependencies extends ShippingDependencies, Pick<Machine, 'deliveries'> {
  readonly kernel: Pick<Kernel, 'kmsg' | 'time'> & ShippingDependencies['kernel']
}

/** Sends the kernel's log, from its oldest record on, to every destination. */
export const deliverKernelLog = (machine: Dependencies): Controller => {
  const { kernel, log, clock } = machine
  const destinations = new Destinations(
    'kernel',
    clock,
    (counts) => new KernelFeed({ kernel, now: () => clock.now(), dropped: dropReporter(counts, log, clock) }),
  )
  machine.deliveries.add(destinations)
  return defineController({
    name: 'runtime.KmsgLogDeliveryController',
    inputs: { config: weak(KmsgLogConfig, { id: 'kmsg-log' }), network: weak(NetworkStatus, { id: 'status' }) },
    outputs: { statuses: shared(DeliveryStatus) },
    reconcile({ config, network, statuses, background, wakeIn }) {
      if (!network.get('status')?.spec.addressReady) return
      const endpoints = (config.get('kmsg-log')?.spec.destinations ?? []).map((url) => endpointOf(joinUrl(url)))
      destinations.retain(new Set(endpoints.map(({ url }) => url)))
      for (const endpoint of endpoints) {
        const destination = destinations.get(endpoint.url)
        background(endpoint.url, (signal) => ship(machine, endpoint, destination, signal))
        statuses.put(`kernel/${endpoint.url}`, destinations.status(destination))
      }
      if (endpoints.length > 0) wakeIn(reportInterval)
    },
  })
}
