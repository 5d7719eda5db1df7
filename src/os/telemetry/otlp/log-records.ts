/** Lines of logs in the messages of OTLP. */
import { opentelemetry } from '../../../rpc/enums.ts'
import type { opentelemetry as messages } from '../../../rpc/messages.ts'
import type { Init } from '../../../rpc/server/method.ts'
import { type Attributes, attributesOf, nanoseconds } from './attributes.ts'
import type { About } from './requests.ts'
import type { ExportRequest } from './sender.ts'

type LogRecord = Init<messages.proto.logs.v1.LogRecord>

const { SeverityNumber } = opentelemetry.proto.logs.v1
const severities: Readonly<Record<string, number>> = {
  debug: SeverityNumber.SEVERITY_NUMBER_DEBUG,
  info: SeverityNumber.SEVERITY_NUMBER_INFO,
  warn: SeverityNumber.SEVERITY_NUMBER_WARN,
  error: SeverityNumber.SEVERITY_NUMBER_ERROR,
  dpanic: SeverityNumber.SEVERITY_NUMBER_FATAL,
  panic: SeverityNumber.SEVERITY_NUMBER_FATAL,
  fatal: SeverityNumber.SEVERITY_NUMBER_FATAL,
}

/** The request with these messages, which are those of `json_lines`. Messages of one service are about that service. */
export function logsRequest(texts: readonly string[], { resource, scope }: About, now: number): ExportRequest<'logs'> {
  const services = new Map<string, LogRecord[]>()
  for (const text of texts) {
    const { 'talos-service': service, ...message } = JSON.parse(text) as Record<string, unknown>
    const name = String(service)
    const records = services.get(name) ?? []
    services.set(name, records)
    records.push(recordOf(message, now))
  }
  return {
    resourceLogs: [...services].map(([service, logRecords]) => ({
      resource: { attributes: attributesOf({ ...resource, 'service.name': service }) },
      scopeLogs: [{ scope, logRecords }],
    })),
  }
}

function recordOf({ msg, 'talos-time': time, 'talos-level': level, ...fields }: Record<string, unknown>, now: number): LogRecord {
  const at = typeof time === 'string' ? Date.parse(time) : Number.NaN
  const severityText = typeof level === 'string' ? level : ''
  return {
    timeUnixNano: nanoseconds(Number.isNaN(at) ? now : at),
    observedTimeUnixNano: nanoseconds(now),
    severityNumber: severities[severityText] ?? SeverityNumber.SEVERITY_NUMBER_UNSPECIFIED,
    severityText,
    body: { stringValue: typeof msg === 'string' ? msg : JSON.stringify(msg ?? '') },
    attributes: attributesOf(plain(fields)),
  }
}

/** What is neither text, number nor truth is shown as JSON. */
function plain(fields: Record<string, unknown>): Attributes {
  const simple = (value: unknown) => typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, simple(value) ? value : JSON.stringify(value)]),
  ) as Attributes
}
