/** One record of the kernel log. */
export interface KernelRecord {
  facility: number
  severity: number
  sequence: number
  /** Microseconds since boot. */
  timestamp: number
  message: string
  /** KEY=value lines after the message. */
  tags: Record<string, string>
}

const unescaped = (text: string) => text.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** Parses the result of one read(2) of /dev/kmsg (dev-kmsg in the kernel's ABI documents); undefined when it is malformed. */
export function parseKernelRecord(text: string): KernelRecord | undefined {
  const [, priority, sequence, timestamp, body] = /^(\d{1,10}),(\d{1,20}),(\d{1,20}),[^;\n]*;(.*)$/s.exec(text.slice(0, 1 << 16)) ?? []
  if (priority === undefined || body === undefined) return undefined
  const [message = '', ...rest] = body.split('\n')
  const tags: Record<string, string> = {}
  for (const line of rest) {
    const at = line.indexOf('=')
    if (line.startsWith(' ') && at > 1) tags[line.slice(1, at)] = unescaped(line.slice(at + 1))
  }
  const number = Number(priority)
  return {
    facility: number >> 3,
    severity: number & 7,
    sequence: Number(sequence),
    timestamp: Number(timestamp),
    message: unescaped(message),
    tags,
  }
}
