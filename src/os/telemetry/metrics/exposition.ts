/**
 * Metrics as text: Prometheus' format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/) and OpenMetrics 1.0
 * (https://prometheus.io/docs/specs/om/open_metrics_spec/).
 */

/** One value with its labels. */
export type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number, suffix?: string]

/** A metric with its samples; `unknown` is for values of the kernel that may be either. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'unknown'
  readonly samples: readonly Sample[]
}

/** The formats. */
export type ExpositionFormat = 'text' | 'openmetrics'

/** Metrics as text; one without samples is left out. */
export function exposition(metrics: Iterable<Metric>, format: ExpositionFormat = 'text'): string {
  const open = format === 'openmetrics'
  let text = ''
  for (const { name, help, type, samples } of metrics) {
    if (samples.length === 0) continue
    // In OpenMetrics the suffix belongs to the samples of a counter, not to its name.
    const family = open && type === 'counter' ? name.replace(/_total$/, '') : name
    text += `# HELP ${family} ${escaped(help, open)}\n# TYPE ${family} ${type === 'unknown' && !open ? 'untyped' : type}\n`
    for (const [labels, value, suffix = ''] of samples) text += `${name}${suffix}${labelText(labels, open)} ${number(value)}\n`
  }
  return open ? `${text}# EOF\n` : text
}

/** The samples of metrics of one value. */
export function gauge(name: string, help: string, value: number | undefined): Metric {
  return { name, help, type: 'gauge', samples: value === undefined ? [] : [[{}, value]] }
}

function labelText(labels: Sample[0], open: boolean): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    // A bound of a histogram is a float in OpenMetrics.
    const shown = open && name === 'le' && Number.isInteger(value) ? `${value}.0` : String(value)
    return `${name}="${escaped(shown, true)}"`
  })
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

function escaped(value: string, quotes: boolean): string {
  const lines = value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return quotes ? lines.replaceAll('"', '\\"') : lines
}

function number(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  return String(value)
}
