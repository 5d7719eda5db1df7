/**
 * Transcripts of commands against a real node: "$ talosctl …", then what it prints. `<n>` stands for a number, `<word>` for
 * any word, `<...>` for the rest of a line, a line of dots for any lines; columns may be of any width. Lines that begin
 * with "! " come on stderr, "= " gives the exit code where it is not 0. `{NAME}` is filled in.
 */

import { readFileSync } from 'node:fs'

/** One command of a transcript and what is to come. */
export interface Scene {
  readonly line: string
  readonly args: string[]
  readonly code: number
  readonly stdout: RegExp
  readonly stderr: RegExp
}

/** The commands of a file, in order. */
export function scenes(path: string, values: Readonly<Record<string, string>>): Scene[] {
  const text = readFileSync(path, 'utf8').replace(/\{([A-Z]+)\}/g, (whole, name: string) => values[name] ?? whole)
  const blocks = text.split(/^\$ talosctl /m).slice(1)
  return blocks.map((block) => {
    const [line = '', ...rest] = block.split('\n').filter((one) => one !== '')
    const code = rest.find((one) => one.startsWith('= '))?.slice(2) ?? '0'
    const onStderr = rest.filter((one) => one.startsWith('! ')).map((one) => one.slice(2))
    const plain = rest.filter((one) => !one.startsWith('! ') && !one.startsWith('= '))
    return { line, args: words(line), code: Number(code), stdout: pattern(plain), stderr: onStderr.length > 0 ? pattern(onStderr) : /^/ }
  })
}

function words(line: string): string[] {
  return (line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'))
}

function pattern(lines: readonly string[]): RegExp {
  const parts = lines.map((line) => {
    if (line === '...') return '(?:[^\\n]*\\n)*'
    const pieces = squeeze(line).split(/(<[^>\s]+>)/)
    const source = pieces.map((piece) => {
      if (piece === '<n>') return '[\\d.]+'
      if (piece === '<...>') return '[^\\n]*'
      if (/^<[^>\s]+>$/.test(piece)) return '\\S+'
      return piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    })
    return `${source.join('')}\\n`
  })
  return new RegExp(`^${parts.join('')}$`)
}

/** Columns of any width: runs of spaces between words are two. */
export function squeeze(text: string): string {
  return text.replace(/(?<=\S) {2,}/g, '  ').replace(/[ \t]+$/gm, '')
}
