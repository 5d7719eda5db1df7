/** Times and durations of messages: google.protobuf.Timestamp and google.protobuf.Duration, which have the same fields. */

/** Seconds, since 1970 in a timestamp, and the nanoseconds after them. */
export interface ProtoTime {
  readonly seconds: number
  readonly nanos: number
}

/** A date as a google.protobuf.Timestamp, whose nanoseconds are never negative. */
export function toTimestamp(date: Date): { seconds: number; nanos: number } {
  const milliseconds = date.getTime()
  const seconds = Math.floor(milliseconds / 1000)
  return { seconds, nanos: Math.round((milliseconds - seconds * 1000) * 1e6) }
}

/** Milliseconds as a google.protobuf.Duration, whose fields have the same sign. */
export function toDuration(milliseconds: number): { seconds: number; nanos: number } {
  const seconds = Math.trunc(milliseconds / 1000)
  return { seconds, nanos: Math.round((milliseconds - seconds * 1000) * 1e6) }
}

/** Milliseconds of either, since 1970 for a timestamp. */
export const toMilliseconds = ({ seconds, nanos }: ProtoTime): number => Number(seconds) * 1000 + nanos / 1e6
