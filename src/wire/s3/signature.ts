/** Signs requests to S3-compatible servers (AWS Signature Version 4, in the header Authorization). */
import { createHash, createHmac } from 'node:crypto'

/** Who signs. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

/** A request before it is signed. */
export interface S3Request {
  readonly method: string
  readonly host: string
  /** Absolute, not encoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  /** Further headers to sign, with lower case names. */
  readonly headers?: Readonly<Record<string, string>>
  /** SHA-256 of the body, in hexadecimal. */
  readonly bodyHash: string
  readonly time: Date
}

const algorithm = 'AWS4-HMAC-SHA256'

/** SHA-256 in hexadecimal. */
export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

/** The path and query of a request as they are sent, and all of its headers. */
export function signed(request: S3Request, { accessKeyId, secretAccessKey, region }: S3Credentials) {
  const { method, host, path, query = {}, headers = {}, bodyHash, time } = request
  const stamp = `${time.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const day = stamp.slice(0, 8)
  const all: Record<string, string> = { ...headers, host, 'x-amz-content-sha256': bodyHash, 'x-amz-date': stamp }
  const names = Object.keys(all).sort()
  const encodedPath = path.split('/').map(encode).join('/')
  const encodedQuery = Object.entries(query)
    .map(([key, value]) => [encode(key), encode(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`)
    .join('&')
  const signedHeaders = names.join(';')
  const canonical = [method, encodedPath, encodedQuery, ...names.map((name) => `${name}:${all[name]?.trim()}`), '', signedHeaders, bodyHash]
  const scope = `${day}/${region}/s3/aws4_request`
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`)
  const signature = hmac(key, [algorithm, stamp, scope, sha256(canonical.join('\n'))].join('\n')).toString('hex')
  const authorization = `${algorithm} Credential=${accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`
  const { host: _, ...sent } = all
  return { target: encodedQuery ? `${encodedPath}?${encodedQuery}` : encodedPath, headers: { ...sent, authorization } }
}

const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()

/** Percent-encoding of all but unreserved characters (RFC 3986, section 2.3). */
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
