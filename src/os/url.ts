import * as v from 'valibot'

/** A parsed URL, as specs store it. */
export const urlParts = v.object({
  scheme: v.string(),
  opaque: v.string(),
  user: v.nullish(v.record(v.string(), v.unknown())),
  host: v.string(),
  path: v.string(),
  fragment: v.string(),
  rawquery: v.string(),
  rawpath: v.string(),
  rawfragment: v.string(),
  forcequery: v.boolean(),
  omithost: v.boolean(),
})

/** A parsed URL. */
export type UrlParts = v.InferOutput<typeof urlParts>

/** Parses a URL. Throws TypeError when it is malformed. */
export function splitUrl(text: string): UrlParts {
  const { protocol, host, pathname, search, hash } = new URL(text)
  return {
    scheme: protocol.slice(0, -1),
    opaque: '',
    host,
    path: pathname === '/' ? '' : pathname,
    fragment: hash.slice(1),
    rawquery: search.slice(1),
    rawpath: '',
    rawfragment: '',
    forcequery: false,
    omithost: false,
  }
}

/** Formats a URL. */
export function joinUrl({ scheme, host, path, rawquery }: UrlParts): string {
  return `${scheme}://${host}${path}${rawquery ? `?${rawquery}` : ''}`
}
