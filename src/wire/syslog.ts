/** Messages sent to /dev/log: RFC 5424, and the older format described in RFC 3164. */

/** One message; fields that it does not contain are absent. */
export interface SyslogMessage {
  readonly facility: number
  readonly severity: number
  /** As sent: RFC 3339 in the newer format, "Jan _2 15:04:05" without a year in the older one. */
  readonly timestamp?: string | undefined
  readonly hostname?: string | undefined
  readonly tag?: string | undefined
  readonly pid?: string | undefined
  readonly messageId?: string | undefined
  /** Element → parameter → value. */
  readonly structuredData?: Record<string, Record<string, string>>
  readonly content: string
}

const none = { facility: 1, severity: 5 } // RFC 3164 section 4.3.3: user, notice

/** Parses one datagram; a message in neither format is all content. Never throws. */
export function parseSyslog(datagram: Uint8Array): SyslogMessage {
  const text = new TextDecoder().decode(datagram).replace(/[\0\n]+$/, '')
  const priority = /^<(\d{1,3})>/.exec(text)
  const value = Number(priority?.[1] ?? 192)
  if (!priority || value > 191) return { ...none, content: text }
  const head = { facility: value >> 3, severity: value & 7 }
  const rest = text.slice(priority[0].length)
  return { ...head, ...(parseNew(rest) ?? parseOld(rest)) }
}

type Body = Omit<SyslogMessage, 'facility' | 'severity'>

/** RFC 5424 section 6: version, timestamp, hostname, program, process, message id, structured data, message. */
function parseNew(text: string): Body | undefined {
  const found = /^1 (\S+) (\S+) (\S+) (\S+) (\S+) ?/.exec(text)
  if (!found) return undefined
  const [all, timestamp, hostname, tag, pid, messageId] = found
  const data = structured(text.slice(all.length))
  if (!data) return undefined
  return {
    timestamp: present(timestamp),
    hostname: present(hostname),
    tag: present(tag),
    pid: present(pid),
    messageId: present(messageId),
    ...(Object.keys(data.elements).length > 0 && { structuredData: data.elements }),
    content: data.rest.replace(/^ /, '').replace(/^\ufeff/, ''),
  }
}

/** RFC 5424 section 6.3; undefined when it is malformed. */
function structured(text: string): { elements: Record<string, Record<string, string>>; rest: string } | undefined {
  const elements: Record<string, Record<string, string>> = {}
  if (text.startsWith('-')) return { elements, rest: text.slice(1) }
  let rest = text
  while (rest.startsWith('[')) {
    const head = /^\[([^\s=\]"]{1,32})/.exec(rest)
    if (!head) return undefined
    rest = rest.slice(head[0].length)
    const values: Record<string, string> = {}
    for (;;) {
      const parameter = /^ ([^\s=\]"]{1,32})="((?:[^"\\\]]|\\.)*)"/s.exec(rest)
      if (!parameter) break
      values[parameter[1] ?? ''] = (parameter[2] ?? '').replace(/\\(["\\\]])/g, '$1')
      rest = rest.slice(parameter[0].length)
    }
    if (!rest.startsWith(']')) return undefined
    rest = rest.slice(1)
    elements[head[1] ?? ''] = values
  }
  return rest === text ? undefined : { elements, rest }
}

/** RFC 3164 section 4.1; on a local socket the host name is usually absent. */
function parseOld(text: string): Body {
  const stamp = /^((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d) /.exec(text)
  const rest = text.slice(stamp?.[0].length ?? 0)
  const tagged = /^(?:([^\s:[\]]+) )?([^\s:[\]]{1,64})(?:\[([^\]]{1,64})\])?: ?/.exec(rest)
  return {
    timestamp: stamp?.[1],
    hostname: stamp ? tagged?.[1] : undefined,
    tag: tagged && (stamp || !tagged[1]) ? tagged[2] : undefined,
    pid: tagged?.[3],
    content: tagged && (stamp || !tagged[1]) ? rest.slice(tagged[0].length) : rest,
  }
}

function present(field: string | undefined): string | undefined {
  return field === '-' ? undefined : field
}
