import type { LogRing } from '../../../supervise/log-ring.ts'

/** How programs begin the lines that say why they end. */
const certain = /^([EF]\d{4} |error\b|fatal\b|panic\b|failed\b)|"level":"(error|fatal|panic)"|level=(error|fatal|panic)/i
const likely = /\b(error|fatal|panic|failed|unknown|invalid|cannot|denied|refused)\b/i
const most = 3
/** Lines of a log in which the reason for an end is looked for. */
const logLines = 30

/** What a program's log, from an offset on, last said of why it ended; nothing when there is no log. */
export async function lastWordsOf(log: Pick<LogRing, 'read'> | undefined, from: number): Promise<string> {
  const chunks: Uint8Array[] = []
  if (log) for await (const chunk of log.read({ tailLines: logLines, from })) chunks.push(chunk)
  return lastWords(Buffer.concat(chunks).toString())
}

/** The few lines of a program's last output that say why it ended, as far as that can be told. */
export function lastWords(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter(Boolean)
  for (const pattern of [certain, likely]) {
    const found = lines.filter((line) => pattern.test(line))
    if (found.length > 0) return found.slice(-most).map(plain).join('\n')
  }
  return lines.slice(-most).map(plain).join('\n')
}

/** A line of JSON as its message and the error with it, which zap calls `error` and klog `err`; any other as it is. */
function plain(line: string): string {
  if (!line.startsWith('{')) return line
  try {
    const { msg, error, err } = JSON.parse(line) as Record<string, unknown>
    return typeof msg === 'string' ? [msg, error ?? err].filter((part) => typeof part === 'string' && part !== '').join(': ') : line
  } catch {
    return line
  }
}
