import { type Output, paint } from '../io.ts'

const [red, green, yellow, cyan] = [1, 2, 3, 6]

/** A text with the lines of a difference in it coloured, on a terminal that takes colours. */
export function paintDiff(output: Output, text: string): string {
  if (!output.colors) return text
  return text
    .split('\n')
    .map((line) => {
      if (/^(---|\+\+\+) /.test(line)) return paint(output, yellow, line)
      if (line.startsWith('@@ ')) return paint(output, cyan, line)
      if (line.startsWith('-')) return paint(output, red, line)
      return line.startsWith('+') ? paint(output, green, line) : line
    })
    .join('\n')
}
