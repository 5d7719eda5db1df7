import { toTimestamp } from '../../rpc/proto-time.ts'
import type { ServiceEvent } from '../../supervise/snapshot.ts'

/** A service's health in the API's form. */
export function healthMessage({ unknown, healthy, lastMessage, lastChange }: ServiceEvent['health']) {
  return { unknown, healthy, lastMessage, lastChange: toTimestamp(lastChange) }
}
