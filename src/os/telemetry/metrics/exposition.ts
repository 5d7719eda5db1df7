/** Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/). */

/** One value with its labels. */
export type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number, suffix?: string]

/** A metric with its samples. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly Sample[]
}

/** Metrics as text; one without samples is left out. */
export function exposition(metrics: Iterable<Metric>): string {
  let text = ''
  for (const { name, help, type, samples } of metrics) {
    if (samples.length === 0) continue
    text += `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`
    for (const [labels, value, suffix = ''] of samples) text += `${name}${suffix}${labelText(labels)} ${number(value)}\n`
  }
  return text
}

function labelText(labels: Sample[0]): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function number(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  return String(value)
}
