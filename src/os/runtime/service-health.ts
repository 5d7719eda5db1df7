import type { ServiceEvent } from '../../supervise/snapshot.ts'

/** A service's health in the API's form. */
export function healthMessage({ unknown, healthy, lastMessage, lastChange }: ServiceEvent['health']) {
  return { unknown, healthy, lastMessage, lastChange: timestampOf(lastChange) }
}

/** A time as seconds and nanoseconds. */
export function timestampOf(time: Date): { seconds: number; nanos: number } {
  const milliseconds = time.getTime()
  const seconds = Math.floor(milliseconds / 1000)
  return { seconds, nanos: (milliseconds - seconds * 1000) * 1_000_000 }
}
