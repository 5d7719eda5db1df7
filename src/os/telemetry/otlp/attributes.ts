import type { opentelemetry } from '../../../rpc/messages.ts'
import type { Init } from '../../../rpc/server/method.ts'

/** Names and values. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

type KeyValue = Init<opentelemetry.proto.common.v1.KeyValue>

/** Attributes in the form of OTLP. */
export const attributesOf = (values: Attributes): KeyValue[] =>
  Object.entries(values).map(([key, value]) => ({ key, value: anyValue(value) }))

function anyValue(value: string | number | boolean): NonNullable<KeyValue['value']> {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isSafeInteger(value) ? { intValue: value } : { doubleValue: value }
}

/** Milliseconds since 1970 as nanoseconds. */
export const nanoseconds = (milliseconds: number): string => String(BigInt(Math.round(milliseconds * 1000)) * 1000n)
