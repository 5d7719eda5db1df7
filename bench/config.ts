/**
 * The configuration's figures: `bun bench/config.ts [--runs N] [--binary FILE]`. Generating is measured as a user has it,
 * the whole command; reading and refusing in processes of their own, with the most memory they held.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError } from '../src/document/config-error.ts'
import { ConfigContainer } from '../src/os/config/container.ts'
import { table } from '../src/programs/talosctl/output/table.ts'
import { median } from './median.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    binary: { type: 'string', default: join(import.meta.dir, '../dist/talosctl') },
    text: { type: 'string' },
  },
})

const bomb = () => {
  const levels = Array.from({ length: 9 }, (_, i) => `        l${i + 1}: &l${i + 1} [${new Array(9).fill(`*l${i}`).join(', ')}]\n`)
  return `machine:\n  kubelet:\n    extraConfig:\n      a:\n        l0: &l0 x\n${levels.join('')}`
}
/** Texts that are read, or refused, by name. */
const texts: Record<string, () => string> = {
  'nothing (the program itself)': () => 'machine: {}\n',
  'alias bomb, 9 levels of 9': bomb,
  '1,000,000 open brackets': () => '['.repeat(1_000_000),
  '1,000,000 list items': () => '- x\n'.repeat(1_000_000),
  'a text of 4 MB without end': () => `machine: "${'a'.repeat(4_000_000)}`,
  '10 MB of comments': () => `machine:\n${'  #'.padEnd(100, 'x').concat('\n').repeat(100_000)}`,
  '1,000 documents': () =>
    Array.from({ length: 1000 }, (_, i) => `apiVersion: v1alpha1\nkind: LinkConfig\nname: l${i}\nup: true\n`).join('---\n'),
}

if (values.text !== undefined) {
  const make = texts[values.text]
  if (!make) throw new Error(`there is no text "${values.text}"`)
  const text = make()
  const since = performance.now()
  let outcome = 'read'
  try {
    ConfigContainer.parse(text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    outcome = `refused: ${error.issues[0]?.message.slice(0, 60)}`
  }
  process.stdout.write(JSON.stringify({ took: performance.now() - since, peak: process.resourceUsage().maxRSS / 1024, outcome }))
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), 'ichor-bench-config-'))
try {
  const run = (...args: string[]) => {
    const since = performance.now()
    const { exitCode, stderr } = Bun.spawnSync([values.binary, ...args])
    if (exitCode !== 0) throw new Error(stderr.toString())
    return performance.now() - since
  }
  const measured = (measure: () => number) => median(Array.from({ length: Number(values.runs) }, measure))
  const secrets = join(folder, 'secrets.yaml')
  run('gen', 'secrets', '--output-file', secrets, '--force')
  const gen = (...more: string[]) => run('gen', 'config', 'bench', 'https://10.0.0.1:6443', '--output', folder, '--force', ...more)
  const rows = [
    ['gen config, new secrets', `${Math.round(measured(() => gen()))} ms`, '<= 1000 ms'],
    ['gen config, secrets given (no RSA key)', `${Math.round(measured(() => gen('--with-secrets', secrets)))} ms`, '< 150 ms'],
  ]
  process.stdout.write(table([['COMMAND', 'MEDIAN', 'AIM'], ...rows]))
  const read = Object.keys(texts).map((name) => {
    const { stdout } = Bun.spawnSync([process.execPath, import.meta.path, '--text', name])
    const { took, peak, outcome } = JSON.parse(stdout.toString()) as { took: number; peak: number; outcome: string }
    return [name, `${took.toFixed(1)} ms`, `${Math.round(peak)} MB`, outcome]
  })
  process.stdout.write(`\n${table([['TEXT', 'TOOK', 'MOST MEMORY', 'OUTCOME'], ...read])}`)
} finally {
  rmSync(folder, { recursive: true })
}
