/** The terminal while the dashboard has it: whole screen, keys one by one, and as it was when it is over. */

const csi = '\u001b['

/** A terminal that shows lines and reports keys. */
export interface Terminal {
  size(): { columns: number; rows: number }
  /** Shows the lines; only those that differ from what is there are written. */
  show(lines: readonly string[]): void
  onKeys(listener: (text: string) => void): void
  onResize(listener: () => void): void
  /** Gives the terminal back. */
  close(): void
}

/** Takes the terminal of this process. */
export function takeTerminal(input: NodeJS.ReadStream, output: NodeJS.WriteStream): Terminal {
  let shown: readonly string[] = []
  const painter = (lines: readonly string[]) => {
    const text = changes(shown, lines)
    shown = lines
    if (text) output.write(text)
  }
  const enter = `${csi}?1049h${csi}?25l${csi}?7l${csi}2J`
  const leave = `${csi}?7h${csi}?25h${csi}?1049l`
  const restore = () => output.write(leave)
  output.write(enter)
  input.setRawMode(true)
  input.resume()
  process.once('exit', restore)
  return {
    size: () => ({ columns: output.columns || 80, rows: output.rows || 24 }),
    show: painter,
    onKeys(listener) {
      input.on('data', (chunk) => listener(chunk.toString()))
    },
    onResize(listener) {
      output.on('resize', () => {
        shown = []
        output.write(`${csi}2J`)
        listener()
      })
    },
    close() {
      process.off('exit', restore)
      input.setRawMode(false)
      input.pause()
      input.removeAllListeners('data')
      output.removeAllListeners('resize')
      restore()
    },
  }
}

/** What to write so that a screen that shows `before` shows `after`: whole lines, in one synchronized update. */
export function changes(before: readonly string[], after: readonly string[]): string {
  let text = ''
  for (const [row, line] of after.entries()) if (line !== before[row]) text += `${csi}${row + 1};1H${line}`
  for (let row = after.length; row < before.length; row++) text += `${csi}${row + 1};1H${csi}K`
  return text && `${csi}?2026h${text}${csi}?2026l`
}
