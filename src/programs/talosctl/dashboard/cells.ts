/** Text in cells of a terminal: cut, padded, coloured. Colours are applied last, to text that already fits. */

const csi = '\u001b['

/** How a piece of text looks. */
export type Style = 'plain' | 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'reverse'

const codes: Record<Style, string> = {
  plain: '',
  bold: '1',
  dim: '2',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
  reverse: '7',
}

/** A piece of a line. */
export type Piece = readonly [text: string, style?: Style | undefined]

/** Text for one line: no control characters, so that what a node writes cannot move the cursor. */
export function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is taken out
  return text.replaceAll('\t', '  ').replace(/\u001b\[[0-9;]*[A-Za-z]|[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\ufeff]/g, '')
}

/** Text of exactly so many cells. */
export function fit(text: string, width: number): string {
  const clean = harmless(text)
  const cells = Bun.stringWidth(clean)
  if (cells <= width) return clean + ' '.repeat(width - cells)
  if (width <= 0) return ''
  let kept = ''
  let used = 0
  for (const character of clean) {
    const next = Bun.stringWidth(character)
    if (used + next > width - 1) break
    kept += character
    used += next
  }
  return `${kept}…${' '.repeat(width - 1 - used)}`
}

/** Text as lines of at most so many cells, broken between words where they are short enough. */
export function wrapped(text: string, width: number): string[] {
  const lines = ['']
  for (const word of harmless(text).split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last !== '' && Bun.stringWidth(last) + 1 + Bun.stringWidth(word) > width) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return lines
}

/** Text of so many cells, at the right end of them. */
export function right(text: string, width: number): string {
  const clean = fit(text, Math.min(width, Bun.stringWidth(harmless(text))))
  return ' '.repeat(Math.max(0, width - Bun.stringWidth(clean))) + clean
}

/** A line of exactly so many cells made of pieces. */
export function line(pieces: readonly Piece[], width: number): string {
  let out = ''
  let left = width
  for (const [text, style = 'plain'] of pieces) {
    if (left <= 0) break
    const cells = Math.min(left, Bun.stringWidth(harmless(text)))
    out += styled(fit(text, cells), style)
    left -= cells
  }
  return out + ' '.repeat(Math.max(0, left))
}

/** Text in a style. */
function styled(text: string, style: Style): string {
  return codes[style] ? `${csi}${codes[style]}m${text}${csi}0m` : text
}

/** The text of a line without its colours. */
export function bare(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
  return text.replace(/\u001b\[[0-9;]*m/g, '')
}

/** A bar of percent: "████░░░░". */
export function bar(percent: number, width: number): string {
  const full = Math.round((Math.min(100, Math.max(0, percent)) / 100) * width)
  return '█'.repeat(full) + '░'.repeat(width - full)
}

const eighths = ' ▁▂▃▄▅▆▇█'

/** Percents over time as lines of blocks, the newest at the right. */
export function graph(values: readonly number[], width: number, height: number): string[] {
  const shown = values.slice(-width)
  return Array.from({ length: height }, (_, row) => {
    const floor = height - 1 - row
    const cells = shown.map((value) => {
      const level = Math.round((Math.min(100, Math.max(0, value)) / 100) * height * 8) - floor * 8
      return eighths[Math.min(8, Math.max(0, level))] ?? ' '
    })
    return cells.join('').padStart(width)
  })
}
