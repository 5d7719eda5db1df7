/** How programs begin the lines that say why they end. */
const certain = /^([EF]\d{4} |error\b|fatal\b|panic\b|failed\b)|"level":"(error|fatal|panic)"|level=(error|fatal|panic)/i
const likely = /\b(error|fatal|panic|failed|unknown|invalid|cannot|denied|refused)\b/i
const most = 3

/** The few lines of a program's last output that say why it ended, as far as that can be told. */
export function lastWords(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter(Boolean)
  for (const pattern of [certain, likely]) {
    const found = lines.filter((line) => pattern.test(line))
    if (found.length > 0) return found.slice(-most).join('\n')
  }
  return lines.slice(-most).join('\n')
}
