/** Metadata of a message: lower-case names, each with one or more values. */
export type Metadata = Readonly<Record<string, readonly string[]>>

/** Headers of HTTP or gRPC itself, never metadata. */
const reserved = new Set([
  'content-type',
  'te',
  'user-agent',
  'connection',
  'host',
  'grpc-timeout',
  'grpc-encoding',
  'grpc-accept-encoding',
  'grpc-status',
  'grpc-message',
])

/** The metadata among the headers of a call. */
export function metadataOf(headers: Record<string, string | readonly string[] | undefined>): Metadata {
  const metadata: Record<string, readonly string[]> = Object.create(null)
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || name.startsWith(':') || reserved.has(name)) continue
    const values = typeof value === 'string' ? [value] : value
    // Binary values may be joined with commas, which base64 does not contain.
    metadata[name] = name.endsWith('-bin') ? values.flatMap((joined) => joined.split(',')) : values
  }
  return metadata
}
