import type { Machine } from '../../area.ts'
import type { Kernel } from '../../kernel.ts'
import { deliver } from './delivery.ts'
import type { DeliveryCounts } from './delivery-counts.ts'
import type { Endpoint } from './endpoint.ts'
import type { Feed } from './feed.ts'
import { openCarrier } from './open-carrier.ts'

/** What sending to destinations uses of the machine. */
export interface ShippingDependencies extends Pick<Machine, 'log' | 'clock' | 'outbound'> {
  readonly kernel: { readonly socket: Pick<Kernel['socket'], 'unacknowledged'> }
}

/** Sends a feed to its destination until the signal. Never rejects. */
export const ship = (
  { kernel, outbound, log, clock }: ShippingDependencies,
  endpoint: Endpoint,
  { reader, counts }: { readonly reader: Feed; readonly counts: DeliveryCounts },
  signal: AbortSignal,
): Promise<void> =>
  deliver(endpoint, reader, { open: openCarrier, clock, log, outbound, counts, unacknowledged: kernel.socket.unacknowledged }, signal)
