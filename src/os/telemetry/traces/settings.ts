/** Where traces are sent: OpenTelemetry's environment variables, which the operator sets in `machine.env`. */

/** How spans are exported. */
export interface TraceSettings {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Attributes of every span. */
  readonly resource: Readonly<Record<string, string>>
  /** The sampled share of the traces that start here, 0 to 1. */
  readonly ratio: number
  readonly timeout: number
}

/** The settings, or nothing where tracing is off; a problem names the invalid variable. */
export function traceSettings(variables: readonly string[]): { settings?: TraceSettings; problem?: string } {
  const env: Record<string, string> = {}
  for (const variable of variables) env[variable.slice(0, variable.indexOf('='))] = variable.slice(variable.indexOf('=') + 1).trim()
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  const common = env.OTEL_EXPORTER_OTLP_ENDPOINT
  const address = own || (common && `${common.replace(/\/+$/, '')}/v1/traces`)
  if (!address || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return {}
  if (!/^https?:\/\/\S+$/.test(address) || !URL.canParse(address))
    return { problem: `the endpoint of traces "${address}" is no HTTP address: set OTEL_EXPORTER_OTLP_ENDPOINT, as "http://host:4318"` }
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL
  if (protocol && protocol !== 'http/json')
    return { problem: `traces are sent as http/json, not as "${protocol}": leave OTEL_EXPORTER_OTLP_PROTOCOL out` }
  const ratio = ratioOf(env.OTEL_TRACES_SAMPLER, env.OTEL_TRACES_SAMPLER_ARG)
  if (ratio === undefined)
    return { problem: `OTEL_TRACES_SAMPLER "${env.OTEL_TRACES_SAMPLER}" with "${env.OTEL_TRACES_SAMPLER_ARG ?? ''}" is not known` }
  const timeout = Number(env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT || env.OTEL_EXPORTER_OTLP_TIMEOUT || 10_000)
  return {
    settings: {
      url: address,
      headers: { ...pairs(env.OTEL_EXPORTER_OTLP_HEADERS), ...pairs(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS) },
      resource: { ...pairs(env.OTEL_RESOURCE_ATTRIBUTES), 'service.name': env.OTEL_SERVICE_NAME || 'machined' },
      ratio,
      timeout: Number.isFinite(timeout) && timeout > 0 ? timeout : 10_000,
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
