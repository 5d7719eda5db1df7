/** One test of a report. */
export interface Chapter {
  name: string
  result: 'passed' | 'failed' | 'skipped'
  seconds: number
}

/** The tests of a report in JUnit's form, as bun writes it. */
export function readReport(xml: string): Chapter[] {
  return [...xml.matchAll(/<testcase\b((?:\s+[\w-]+="[^"]*")*)\s*(\/>|>([\s\S]*?)<\/testcase>)/g)].map(
    ([, attributes = '', , body = '']) => {
      const value = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
      const result = /<(failure|error)\b/.test(body) ? 'failed' : /<skipped\b/.test(body) ? 'skipped' : 'passed'
      return { name: unescaped(value('name')), result, seconds: Number(value('time')) || 0 }
    },
  )
}

/**
 * What each failed test said, from the output of bun's test runner: the lines since the end of the test before it, the last of
 * them `(fail) name`; of more than `limit` lines the last ones.
 */
export function reasonsOf(output: string, limit: number): string[] {
  const reasons: string[] = []
  let since: string[] = []
  for (const line of output.split('\n')) {
    since.push(line)
    if (line.startsWith('(fail)')) reasons.push(since.slice(-limit).join('\n'))
    if (/^\((pass|fail|skip|todo)\)/.test(line)) since = []
  }
  return reasons
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&apos;', "'").replaceAll('&amp;', '&')
}
