import type { LogRing } from './log-ring.ts'

/** How lines start in which programs state why they exit. */
const certain = /^([EF]\d{4} |error\b|fatal\b|panic\b|failed\b)|"level":"(error|fatal|panic)"|level=(error|fatal|panic)/i
const likely = /\b(error|fatal|panic|failed|unknown|invalid|cannot|denied|refused)\b/i
const most = 3
/** Number of lines of a log that are searched for the reason. */
const logLines = 30

/** The last output of a program in its log, from an offset on, about its exit; nothing when there is no log. */
export async function lastWordsOf(log: Pick<LogRing, 'read'> | undefined, from: number): Promise<string> {
  const chunks: Uint8Array[] = []
  if (log) for await (const chunk of log.read({ tailLines: logLines, from })) chunks.push(chunk)
  return lastWords(Buffer.concat(chunks).toString())
}

/** The few lines of a program's last output that state why it exited, as far as they can be recognized. */
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

/** The message of a JSON line with its error, which zap calls `error` and klog `err`; any other line as it is. */
function plain(line: string): string {
  if (!line.startsWith('{')) return line
  try {
    const { msg, error, err } = JSON.parse(line) as Record<string, unknown>
    return typeof msg === 'string' ? [msg, error ?? err].filter((part) => typeof part === 'string' && part !== '').join(': ') : line
  } catch {
    return line
  }
}
