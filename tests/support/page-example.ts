/**
 * The example of docs/contributing.md in a copy of the source. A code block whose first line is a path is a file; one of the
 * language "diff" changes a file: what each part after "@@" takes away or leaves must be in it exactly once.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const repository = join(import.meta.dir, '../..')
const copied = ['src', 'proto', 'rootfs', 'tests', 'docs', 'package.json', 'tsconfig.json', 'biome.json', 'bunfig.toml', '.gitignore']

/** A copy of the source with the example in it; gone when it is disposed of. */
export interface PageExample extends Disposable {
  readonly folder: string
  /** The paths of its TypeScript files. */
  readonly sources: readonly string[]
  /** Runs a program in the copy. */
  run(...argv: string[]): Promise<{ code: number; output: string }>
}

/** Writes the example. Throws when the page changes a file that is not as the page has it. */
export async function writePageExample(): Promise<PageExample> {
  const copy = mkdtempSync(join(tmpdir(), 'ichor-example-'))
  for (const name of copied) cpSync(join(repository, name), join(copy, name), { recursive: true })
  symlinkSync(join(repository, 'node_modules'), join(copy, 'node_modules'))
  const sources: string[] = []
  for (const { language, first, text } of blocks()) {
    const path = language === 'diff' ? first.slice('--- '.length) : first.startsWith('// ') ? first.slice('// '.length) : undefined
    if (path === undefined) continue
    const file = join(copy, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, language === 'diff' ? changed(readFileSync(file, 'utf8'), text, path) : text)
    if (language === 'ts') sources.push(path)
  }
  return {
    folder: copy,
    sources,
    async run(...argv) {
      const child = Bun.spawn(argv, { cwd: copy, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
      const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
      return { code, output: out + err }
    },
    [Symbol.dispose]() {
      rmSync(copy, { recursive: true })
    },
  }
}

/** The code blocks of the page: language, first line and the rest. */
function blocks() {
  const page = readFileSync(join(repository, 'docs/contributing.md'), 'utf8')
  return [...page.matchAll(/^```(\w+)\n([^\n]*)\n([\s\S]*?)^```$/gm)].map(([, language = '', first = '', text = '']) => ({
    language,
    first,
    text,
  }))
}

function changed(before: string, diff: string, path: string): string {
  let text = before
  for (const part of diff.split(/^@@\n/m).filter(Boolean)) {
    const lines = part.trimEnd().split('\n')
    const without = (sign: string) => lines.flatMap((line) => (line.startsWith(sign) ? [] : [`${line.slice(1)}\n`])).join('')
    const pieces = `\n${text}`.split(`\n${without('+')}`)
    if (pieces.length !== 2)
      throw new Error(`docs/contributing.md changes ${path}, which has this ${pieces.length - 1} times:\n${without('+')}`)
    text = pieces.join(`\n${without('-')}`).slice(1)
  }
  return text
}
