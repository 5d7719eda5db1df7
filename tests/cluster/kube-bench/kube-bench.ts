/** The CIS benchmark of Kubernetes by kube-bench, on a node of a real cluster. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { succeeded, type TestCluster } from '../cluster.ts'

const module = import.meta.dir
const name = 'github.com/aquasecurity/kube-bench'
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor', 'interop')

/** Where the program and its checks are. */
export interface KubeBench {
  readonly program: string
  readonly checks: string
}

async function run(argv: string[]): Promise<string> {
  const child = Bun.spawn(argv, { cwd: module, env: { ...process.env, CGO_ENABLED: '0' }, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  return succeeded({ code, stdout, stderr }).stdout
}

/** Builds kube-bench: a minute the first time, then Go's own cache makes it quick. Its checks are part of its module. */
export async function buildKubeBench(): Promise<KubeBench> {
  mkdirSync(cache, { recursive: true })
  const program = join(cache, 'kube-bench')
  await run(['go', 'build', '-trimpath', '-o', program, name])
  const checks = join((await run(['go', 'list', '-m', '-f', '{{.Dir}}', name])).trim(), 'cfg')
  if (!existsSync(join(checks, 'cis-1.10'))) throw new Error(`${checks} has no profile cis-1.10`)
  return { program, checks }
}

interface Report {
  Controls: { tests: { results: { test_number: string; status: string }[] }[] }[]
}

/** Runs these targets in the process namespace of a node; every check with its result, in order: `1.2.3 PASS`. */
export async function benchmark({ program, checks }: KubeBench, cluster: TestCluster, node: string, targets: string): Promise<string[]> {
  const root = mkdtempSync(join(cluster.home, 'kube-bench-'))
  try {
    const inside = ['nsenter', '-t', String(cluster.initOf(node)), '-p', '--', 'unshare', '-m', '--propagation', 'private']
    const { Controls } = JSON.parse(await run([...inside, join(module, 'run.sh'), root, checks, program, targets])) as Report
    return Controls.flatMap(({ tests }) => tests.flatMap(({ results }) => results.map((one) => `${one.test_number} ${one.status}`)))
  } finally {
    rmSync(root, { recursive: true })
  }
}

/** A check that does not pass, and why that is right here. */
interface Exception {
  readonly role: string
  readonly check: string
  readonly result: string
  readonly reason: string
}

/** The reviewed results of expected.tsv. */
export function exceptions(): Exception[] {
  const [, ...lines] = readFileSync(join(import.meta.dir, 'expected.tsv'), 'utf8')
    .trimEnd()
    .split('\n')
  return lines.map((line) => {
    const [role = '', check = '', result = '', reason = ''] = line.split('\t')
    return { role, check, result, reason }
  })
}
