import type { OpenCarrier } from './carrier.ts'
import { datagramCarrier } from './datagram-carrier.ts'
import { streamCarrier } from './stream-carrier.ts'

/** Connects by the protocol of the endpoint. */
export const openCarrier: OpenCarrier = (endpoint, context, signal) =>
  endpoint.protocol === 'udp' ? datagramCarrier(endpoint, signal) : streamCarrier(endpoint, context, signal)
