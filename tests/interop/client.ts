/** The program on the field's own Go client library (main.go beside this file), built once, and run against a node. */
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type PemPair, toBase64 } from '../../src/pki/certificate.ts'
import { finished } from '../support/command-result.ts'

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor', 'interop')

/** Builds the program; Go's own cache makes a second time quick. */
export const buildClient = (): Promise<string> => build('interop', 'build')

/** Builds the field's conformance suite for states. */
export const buildConformance = (): Promise<string> => build('conformance', 'test', '-c')

/** Builds the program that makes the calls of programs that manage machines (clients/ beside this file). */
export const buildManagers = (): Promise<string> => buildIn(import.meta.dir, 'managers', ['build'], './clients')

/** Builds the field's own talosctl: some 2,000 packages, minutes the first time. */
export const buildTalosctl = (): Promise<string> =>
  buildIn(join(import.meta.dir, 'talosctl'), 'talosctl', ['build', '-ldflags', '-s -w'], 'github.com/siderolabs/talos/cmd/talosctl')

const build = (name: string, ...command: string[]): Promise<string> => buildIn(import.meta.dir, name, command, '.')

async function buildIn(cwd: string, name: string, command: readonly string[], what: string): Promise<string> {
  mkdirSync(cache, { recursive: true })
  const program = join(cache, name)
  const go = Bun.spawn(['go', ...command, '-trimpath', '-o', program, what], {
    cwd,
    env: { ...process.env, CGO_ENABLED: '0' },
    stderr: 'pipe',
  })
  const output = await new Response(go.stderr).text()
  if ((await go.exited) !== 0 || !existsSync(program)) throw new Error(`go ${command[0]}: ${output}`)
  return program
}

/** A client configuration for these certificates, as a file in a folder that is the caller's to remove. */
export function talosconfig(folder: string, ca: string, { crt, key }: PemPair): string {
  const file = join(mkdtempSync(join(folder, 'client-')), 'talosconfig')
  const context = `ca: ${toBase64(ca)}\n    crt: ${toBase64(crt)}\n    key: ${toBase64(key)}`
  writeFileSync(file, `context: test\ncontexts:\n  test:\n    endpoints: [127.0.0.1]\n    ${context}\n`, { mode: 0o600 })
  return file
}

/** What the program printed; a refused call is `{ code, message }`. */
export async function runClient(program: string, args: string[]): Promise<unknown> {
  const child = Bun.spawn([program, ...args], { stderr: 'pipe' })
  const [out, output] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  if (code !== 0 && code !== 3) throw new Error(`interop ${args.join(' ')}: ${output}`)
  return JSON.parse(out)
}

/** One step of a scenario of the managers: how a call ended, and what was made of its answer. */
export interface Step {
  readonly step: string
  readonly code: string
  readonly message?: string
  readonly value?: unknown
}

/** Runs a scenario of the managers; its steps by name. */
export async function runSteps(program: string, args: string[]): Promise<Record<string, Step>> {
  const child = Bun.spawn([program, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const { code, stdout, stderr } = await finished(child)
  if (code !== 0) throw new Error(`${args.at(-1)}: ${stderr}${stdout}`)
  const steps: Step[] = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  return Object.fromEntries(steps.map((step) => [step.step, step]))
}
