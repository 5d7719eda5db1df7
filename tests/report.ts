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

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&apos;', "'").replaceAll('&amp;', '&')
}
