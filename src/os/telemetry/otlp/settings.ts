/** Where telemetry is sent: the configuration's TelemetryConfig, else OpenTelemetry's environment variables, which are about traces. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentOf } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'
import type { TelemetryConfig } from '../documents/telemetry.ts'
import { protocols } from '../resources/otlp-protocols.ts'
import type { TelemetryCollector } from '../resources/telemetry-collector.ts'

/** How telemetry is exported. */
export type OtlpSettings = SpecOf<typeof TelemetryCollector>

const defaultTimeout = 10_000
const defaultInterval = 60_000
const defaultService = 'machined'

/** The settings of a document; undefined where it declares no collector. */
export function settingsOf({ otlp }: DocumentOf<typeof TelemetryConfig>): OtlpSettings | undefined {
  if (otlp?.endpoint === undefined) return undefined
  const { endpoint, protocol = 'http/protobuf', headers = {}, attributes = {}, traces, metrics, logs, timeout } = otlp
  const base = endpoint.replace(/\/+$/, '')
  return {
    protocol,
    traces: traces ? `${base}/v1/traces` : '',
    ratio: traces?.ratio ?? 1,
    metrics: metrics ? `${base}/v1/metrics` : '',
    interval: metrics?.interval === undefined ? defaultInterval : milliseconds(metrics.interval),
    logs: logs ? `${base}/v1/logs` : '',
    services: logs?.services ?? [],
    timeout: timeout === undefined ? defaultTimeout : milliseconds(timeout),
    attributes: { 'service.name': defaultService, ...attributes },
    headers,
  }
}

/** The settings that variables make, or nothing where tracing is off; a problem names the invalid variable. */
export function traceSettings(variables: readonly string[]): { settings?: OtlpSettings; problem?: string } {
  const env: Record<string, string> = {}
  for (const variable of variables) env[variable.slice(0, variable.indexOf('='))] = variable.slice(variable.indexOf('=') + 1).trim()
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  const common = env.OTEL_EXPORTER_OTLP_ENDPOINT
  const address = own || (common && `${common.replace(/\/+$/, '')}/v1/traces`)
  if (!address || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return {}
  if (!/^https?:\/\/\S+$/.test(address) || !URL.canParse(address))
    return { problem: `the endpoint of traces "${address}" is no HTTP address: set OTEL_EXPORTER_OTLP_ENDPOINT, as "http://host:4318"` }
  const named = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/json'
  const protocol = protocols.find((each) => each === named)
  if (!protocol) return { problem: `OTEL_EXPORTER_OTLP_PROTOCOL "${named}" is not known: use ${protocols.join(', ')}` }
  const ratio = ratioOf(env.OTEL_TRACES_SAMPLER, env.OTEL_TRACES_SAMPLER_ARG)
  if (ratio === undefined)
    return { problem: `OTEL_TRACES_SAMPLER "${env.OTEL_TRACES_SAMPLER}" with "${env.OTEL_TRACES_SAMPLER_ARG ?? ''}" is not known` }
  const timeout = Number(env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT || env.OTEL_EXPORTER_OTLP_TIMEOUT || defaultTimeout)
  const headers = { ...pairs(env.OTEL_EXPORTER_OTLP_HEADERS), ...pairs(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS) }
  return {
    settings: {
      protocol,
      traces: address,
      ratio,
      metrics: '',
      interval: defaultInterval,
      logs: '',
      services: [],
      timeout: Number.isFinite(timeout) && timeout > 0 ? timeout : defaultTimeout,
      attributes: { ...pairs(env.OTEL_RESOURCE_ATTRIBUTES), 'service.name': env.OTEL_SERVICE_NAME || defaultService },
      headers,
    },
  }
}

/** Parses `name=value,…` with URL-encoded values. */
function pairs(text = ''): Record<string, string> {
  const found: Record<string, string> = {}
  for (const pair of text.split(',')) {
    const at = pair.indexOf('=')
    if (at > 0) found[pair.slice(0, at).trim()] = decoded(pair.slice(at + 1).trim())
  }
  return found
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function ratioOf(sampler = 'parentbased_always_on', argument = '1'): number | undefined {
  const kind = sampler.replace(/^parentbased_/, '')
  if (kind === 'always_on') return 1
  if (kind === 'always_off') return 0
  const ratio = Number(argument)
  return kind === 'traceidratio' && ratio >= 0 && ratio <= 1 ? ratio : undefined
}
