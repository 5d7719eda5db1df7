/**
 * Draws the dashboard of this folder with the data of a Prometheus, as one SVG:
 * `bun docs/observability/draw.ts http://HOST:9090 [--minutes N] > dashboard.svg`.
 */
import { parseArgs } from 'node:util'
import { humanSize } from '../../src/programs/talosctl/output/units.ts'
import { readableDuration, readableNumber } from './units.ts'

const cell = { width: 60, height: 34, gap: 6 } as const
const colours = ['#4e79a7', '#f28e2b', '#59a14f', '#e15759', '#76b7b2', '#b07aa1', '#9c755f', '#edc948'] as const
/** Entries of a legend that are shown. */
const legendLines = 3
const points = 240

interface Panel {
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat?: string }[]
  readonly fieldConfig?: { readonly defaults?: { readonly unit?: string } }
}

/** A line of a chart: times in seconds since 1970 and values. */
export interface Series {
  readonly name: string
  readonly values: readonly (readonly [time: number, value: number])[]
}

/** The period that is drawn, in seconds since 1970. */
export interface Period {
  readonly start: number
  readonly end: number
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
const fixed = (value: number) => value.toFixed(1)

/** The series of an expression, with all nodes and a rate interval of a minute. */
async function seriesOf(server: string, expr: string, legend: string, { start, end }: Period): Promise<Series[]> {
  const query = expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m')
  const step = Math.max(1, Math.round((end - start) / points))
  const parameters = new URLSearchParams({ query, start: `${start}`, end: `${end}`, step: `${step}` })
  const response = await fetch(`${server}/api/v1/query_range?${parameters}`)
  const answer = (await response.json()) as {
    error?: string
    data?: { result: { metric: Record<string, string>; values: [number, string][] }[] }
  }
  if (!answer.data) throw new Error(`query "${query}": ${answer.error ?? response.statusText}`)
  return answer.data.result.map(({ metric, values }) => ({
    name: legend.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_, label: string) => metric[label] ?? ''),
    values: values.map(([time, value]) => [time, Number(value)] as const).filter(([, value]) => Number.isFinite(value)),
  }))
}

/** A value in the unit of a panel, as the dashboard names units. */
export function valueIn(unit: string, value: number): string {
  if (unit === 'percentunit') return `${readableNumber(value * 100)} %`
  if (unit === 's') return readableDuration(value)
  if (unit === 'bytes') return humanSize(Math.round(value))
  if (unit === 'Bps') return `${humanSize(Math.round(value))}/s`
  if (unit === 'pps' || unit === 'reqps') return `${readableNumber(value)}/s`
  return readableNumber(value)
}

function frame({ title, gridPos: { x, y, w, h } }: Panel, content: (width: number, height: number) => string): string {
  const [width, height] = [w * cell.width - cell.gap, h * cell.height - cell.gap]
  return `<svg x="${x * cell.width}" y="${y * cell.height}" width="${width}" height="${height}"><rect width="${width}" height="${height}" rx="4" class="panel"/>
<text x="10" y="20" class="title">${escaped(title)}</text>${content(width, height)}</svg>`
}

/** A panel with one number: the last of its first series. */
export function stat(panel: Panel, [first]: readonly Series[]): string {
  const value = first?.values.at(-1)?.[1]
  const text = value === undefined ? 'no data' : valueIn(panel.fieldConfig?.defaults?.unit ?? 'none', value)
  return frame(panel, (width, height) => `<text x="${width / 2}" y="${height / 2 + 20}" class="number">${escaped(text)}</text>`)
}

/** A panel with a line for each series. */
export function chart(panel: Panel, all: readonly Series[], { start, end }: Period): string {
  const unit = panel.fieldConfig?.defaults?.unit ?? 'none'
  const values = all.flatMap(({ values }) => values.map(([, value]) => value))
  const low = Math.min(0, ...values)
  const top = Math.max(low, ...values)
  const high = top > low ? top : low + 1
  return frame(panel, (width, height) => {
    const [left, upper, right, lower] = [70, 32, width - 12, height - 24 - legendLines * 15]
    const x = (time: number) => left + ((time - start) / (end - start)) * (right - left)
    const y = (value: number) => lower - ((value - low) / (high - low)) * (lower - upper)
    const rules = [0, 0.5, 1].map((share) => {
      const value = low + share * (high - low)
      return `<path d="M${left} ${fixed(y(value))}H${right}" class="rule"/><text x="${left - 6}" y="${fixed(y(value) + 4)}" class="scale">${escaped(valueIn(unit, value))}</text>`
    })
    const times = [start, end].map((time, index) => {
      const clock = new Date(time * 1000).toISOString().slice(11, 16)
      return `<text x="${index === 0 ? left : right}" y="${lower + 15}" class="${index === 0 ? 'legend' : 'scale'}">${clock}</text>`
    })
    const lines = all.map(({ values }, index) => {
      const path = values.map(([time, value], at) => `${at === 0 ? 'M' : 'L'}${fixed(x(time))} ${fixed(y(value))}`).join('')
      return `<path d="${path}" stroke="${colours[index % colours.length]}" class="line"/>`
    })
    const names = all.slice(0, legendLines).map(({ name }, index) => {
      const more = index === legendLines - 1 && all.length > legendLines ? ` and ${all.length - legendLines} more` : ''
      const row = lower + 32 + index * 15
      return `<rect x="10" y="${row - 9}" width="10" height="10" fill="${colours[index % colours.length]}"/><text x="26" y="${row}" class="legend">${escaped(name + more)}</text>`
    })
    const nothing = all.length === 0 ? [`<text x="${width / 2}" y="${height / 2}" class="none">nothing in this period</text>`] : []
    return [...rules, ...times, ...lines, ...names, ...nothing].join('\n')
  })
}

const style = `.panel{fill:#fff;stroke:#d5d9de}.title{font-weight:600}.row{font-size:15px;font-weight:600}.rule{stroke:#e8ebee}.line{fill:none;stroke-width:1.3}
text{font:12px sans-serif;fill:#24292f}.number{font-size:30px;text-anchor:middle}.scale{font-size:11px;text-anchor:end;fill:#57606a}
.legend{font-size:11px;fill:#57606a}.none{text-anchor:middle;fill:#8c959f}`

/** The whole dashboard for a period. */
export async function draw(dashboard: { readonly panels: readonly Panel[] }, server: string, period: Period): Promise<string> {
  const parts: string[] = []
  for (const panel of dashboard.panels) {
    const { x, y } = panel.gridPos
    if (panel.type === 'row') {
      parts.push(`<text x="${x * cell.width + 4}" y="${y * cell.height + 22}" class="row">${escaped(panel.title)}</text>`)
      continue
    }
    const found = await Promise.all(
      (panel.targets ?? []).map(({ expr, legendFormat = '' }) => seriesOf(server, expr, legendFormat, period)),
    )
    parts.push(panel.type === 'stat' ? stat(panel, found.flat()) : chart(panel, found.flat(), period))
  }
  const height = Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => y + h)) * cell.height
  const width = 24 * cell.width
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<style>${style}</style><rect width="${width}" height="${height}" fill="#f6f8fa"/>
${parts.join('\n')}
</svg>
`
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { minutes: { type: 'string', default: '15' } } })
  const [server] = positionals
  const minutes = Number(values.minutes)
  if (!server || !(minutes > 0)) {
    console.error('usage: bun docs/observability/draw.ts http://HOST:9090 [--minutes N] > dashboard.svg')
    process.exit(64)
  }
  const end = Math.floor(Date.now() / 1000)
  const dashboard = await Bun.file(`${import.meta.dir}/dashboard.json`).json()
  process.stdout.write(await draw(dashboard, server.replace(/\/$/, ''), { start: end - minutes * 60, end }))
}
