/** Which format and encoding a client prefers (RFC 9110, section 12.5). */

/** A format of metrics. */
export type Format = 'text' | 'openmetrics'

/** The media types of the formats. */
export const mediaTypes: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

interface Range {
  readonly name: string
  readonly parameters: ReadonlyMap<string, string>
  readonly quality: number
}

/** OpenMetrics where a client names it and does not prefer the text format; else the text format. */
export function formatFor(accept: string): Format {
  const ranges = rangesIn(accept)
  const best = (fits: (range: Range) => boolean) => Math.max(0, ...ranges.filter(fits).map(({ quality }) => quality))
  const versions = ['', '0.0.1', '1.0.0']
  const open = best(({ name, parameters }) => name === 'application/openmetrics-text' && versions.includes(parameters.get('version') ?? ''))
  return open > 0 && open >= best(({ name }) => name === 'text/plain') ? 'openmetrics' : 'text'
}

/** Whether a client takes gzip. */
export const takesGzip = (acceptEncoding: string): boolean =>
  rangesIn(acceptEncoding).some(({ name, quality }) => (name === 'gzip' || name === '*') && quality > 0)

function rangesIn(header: string): Range[] {
  return header.split(',').map((part) => {
    const [name = '', ...rest] = part.split(';').map((word) => word.trim().toLowerCase())
    const parameters = new Map(
      rest.map((word) => {
        const at = word.indexOf('=')
        return at < 0 ? ([word, ''] as const) : ([word.slice(0, at), word.slice(at + 1).replaceAll('"', '')] as const)
      }),
    )
    const quality = Number(parameters.get('q') ?? 1)
    return { name, parameters, quality: quality >= 0 && quality <= 1 ? quality : 0 }
  })
}
