import { DecodeError } from '../decode-error.ts'

/** The head of a request of HTTP/1.0 or 1.1 (RFC 9112). */
export interface RequestHead {
  readonly method: string
  /** The target as it was sent. */
  readonly target: string
  readonly minor: 0 | 1
  /** Values by lower-case names; those of a name that was sent several times are joined by commas. */
  readonly headers: ReadonlyMap<string, string>
}

const most = 100
const requestLine = /^([A-Z]{1,16}) (\S{1,2048}) HTTP\/1\.([01])$/
const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/

/** Parses a head without the empty line at its end; throws DecodeError. Folded lines and bytes of control are refused. */
export function parseRequestHead(text: string): RequestHead {
  const [first = '', ...lines] = text.split('\r\n')
  const [, method, target, minor] = requestLine.exec(first) ?? []
  if (method === undefined || target === undefined) throw new DecodeError('request', 0, 'not a request line of HTTP/1.1')
  if (lines.length > most) throw new DecodeError('request', first.length, `more than ${most} headers`)
  const headers = new Map<string, string>()
  let offset = first.length + 2
  for (const line of lines) {
    const [, name, value = ''] = field.exec(line) ?? []
    if (name === undefined) throw new DecodeError('request', offset, 'not a header')
    const key = name.toLowerCase()
    const before = headers.get(key)
    if (before !== undefined && (key === 'host' || key === 'content-length' || key === 'authorization'))
      throw new DecodeError('request', offset, `a second header "${key}"`)
    headers.set(key, before === undefined ? value.trim() : `${before}, ${value.trim()}`)
    offset += line.length + 2
  }
  return { method, target, minor: minor === '1' ? 1 : 0, headers }
}
