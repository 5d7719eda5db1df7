/** One test of a report. */
export interface TestResult {
  name: string
  result: 'passed' | 'failed' | 'skipped'
  seconds: number
}

/** Reads the tests of a JUnit report written by bun. */
export function readReport(xml: string): TestResult[] {
  return [...xml.matchAll(/<testcase\b((?:\s+[\w-]+="[^"]*")*)\s*(\/>|>([\s\S]*?)<\/testcase>)/g)].map(
    ([, attributes = '', , body = '']) => {
      const value = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
      const result = /<(failure|error)\b/.test(body) ? 'failed' : /<skipped\b/.test(body) ? 'skipped' : 'passed'
      return { name: unescaped(value('name')), result, seconds: Number(value('time')) || 0 }
    },
  )
}

/**
 * The output of each failed test, from the output of bun's test runner: the lines since the end of the previous test up to
 * `(fail) name`, at most the last `limit`.
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
