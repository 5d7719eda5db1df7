/**
 * The test command: type check, lint, the unit suite, machines in a sandbox, then the stories on real clusters. Every step runs, also after a
 * failed one; the last line is the total. Only the runtime is required: the dependencies are installed here.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readReport, reasonsOf, type TestResult } from './report.ts'

/** Lines of output that are repeated for each failure. */
const lastLines = 25

interface Count {
  passed: number
  failed: number
  skipped: number
}

const root = join(import.meta.dir, '..')
const scratch = mkdtempSync(join(tmpdir(), 'ichor-tests-'))
const total: Count = { passed: 0, failed: 0, skipped: 0 }
const summary: string[] = []
/** Seconds by step, so that what is long is seen before the whole is too long. */
const durations: { name: string; seconds: number }[] = []
/** Steps that are shown with their durations. */
const longest = 15
/** The output of failed tests, repeated at the end, because long output is often truncated. */
const reasons: string[] = []

function add(count: Count): void {
  total.passed += count.passed
  total.failed += count.failed
  total.skipped += count.skipped
}

/** Runs the program of a step; its output is shown and returned. */
async function run(name: string, argv: string[]): Promise<{ code: number; output: string }> {
  console.log(`\n== ${name}`)
  const started = performance.now()
  const child = Bun.spawn(argv, { cwd: root, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  let output = ''
  const show = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const bytes of stream) {
      process.stdout.write(bytes)
      output += decoder.decode(bytes, { stream: true })
    }
  }
  const [code] = await Promise.all([child.exited, show(child.stdout), show(child.stderr)])
  durations.push({ name, seconds: Math.round((performance.now() - started) / 1000) })
  return { code, output }
}

/** Runs a step that passes or fails as a whole. */
async function check(name: string, argv: string[]): Promise<boolean> {
  const { code, output } = await run(name, argv)
  const passed = code === 0
  add(passed ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 })
  if (!passed) {
    summary.push(`failed: ${name}`)
    reasons.push(`${name}:\n${output.trimEnd().split('\n').slice(-lastLines).join('\n')}`)
  }
  return passed
}

/** Runs a step of bun's test runner, or of a program that runs it; each test counts. */
async function suite(name: string, args: string[], runner = 'test'): Promise<void> {
  const report = join(scratch, `${name.replaceAll(/\W+/g, '-')}.xml`)
  const { code, output } = await run(name, [process.execPath, runner, '--reporter=junit', `--reporter-outfile=${report}`, ...args])
  const count = counted(existsSync(report) ? readReport(readFileSync(report, 'utf8')) : [])
  // A run that ends before its first test counts as one failure.
  const failures = reasonsOf(output, lastLines)
  if (code !== 0 && count.failed === 0) {
    count.failed = 1
    if (failures.length === 0) failures.push(output.trimEnd().split('\n').slice(-lastLines).join('\n'))
  }
  for (const each of failures) reasons.push(`${name}:\n${each}`)
  add(count)
  if (count.failed > 0) summary.push(`failed: ${name}: ${count.failed}`)
  if (count.skipped > 0) summary.push(`skipped: ${name}: ${count.skipped}`)
}

function counted(tests: readonly TestResult[]): Count {
  const number = (result: TestResult['result']) => tests.filter((each) => each.result === result).length
  return { passed: number('passed'), failed: number('failed'), skipped: number('skipped') }
}

function stories(folder: string): string[] {
  const path = join(root, 'tests', folder)
  if (!existsSync(path)) return []
  return readdirSync(path)
    .filter((file) => file.endsWith('.story.ts'))
    .sort()
    .map((file) => `./tests/${folder}/${file}`)
}

/** Whether a story needs the image of the system, and root to start nodes of it. */
function startsCluster(file: string): boolean {
  return readFileSync(join(root, file), 'utf8').includes('new TestCluster(')
}

function skip(files: readonly string[], reason: string): void {
  for (const file of files) summary.push(`skipped: ${file}: ${reason}`)
  add({ passed: 0, failed: 0, skipped: files.length })
}

if (process.argv.length > 2) {
  console.error('the test command takes no arguments and runs everything: "bun tests/all.ts --list" shows what else there is')
  process.exit(64)
}
if (!(await check('install dependencies', [process.execPath, 'install', '--frozen-lockfile']))) finish()
const tools = join(root, 'node_modules/.bin')
await check('type check', [join(tools, 'tsc'), '-p', '.'])
await check('example for contributors', [process.execPath, 'tests/example.ts'])
await check('lint and format', [join(tools, 'biome'), 'check', '--error-on-warnings', '.'])
// Reference implementations that stories compare with; without root, stories whose program is missing are skipped.
const asRoot = process.platform === 'linux' && process.getuid?.() === 0
for (const folder of ['linux', 'network']) if (asRoot) await check(`judges of ${folder}`, [process.execPath, `tests/${folder}/prepare.ts`])
// Property tests run with all iterations here, and with a tenth of them in `bun run unit` (tests/support/runs.ts).
process.env.FUZZ_RUNS ??= '100'
await suite('unit', [], 'tests/unit.ts')
await suite('machines in a sandbox', [], 'tests/sandbox.ts')

// The official client against our API: most stories need Go, but neither root nor a cluster.
const withCluster = stories('interop').filter(startsCluster)
const withoutCluster = stories('interop').filter((file) => !withCluster.includes(file))
if (Bun.which('go')) for (const file of withoutCluster) await suite(file, [file, '--timeout', '900000'])
else skip(withoutCluster, 'needs Go')

const real = [
  ...stories('linux'),
  ...stories('network').filter((file) => !file.endsWith('-vm.story.ts')),
  ...stories('cluster'),
  ...stories('cluster/families'),
  ...stories('cluster/images'),
  ...stories('cluster/extensions'),
  ...stories('cluster/shipping'),
  ...withCluster,
]
/** Stories that run the system as a container image. */
const imageFolders = ['nested', 'engine'] as const
const asImage = imageFolders.flatMap((folder) => stories(`cluster/${folder}`))
if (process.platform !== 'linux') skip([...real, ...asImage], 'needs Linux')
else if (!asRoot) skip([...real, ...asImage], 'needs root: run the test command with sudo')
else if (await check('build', [process.execPath, 'rootfs/build.ts'])) {
  await check('clusters of ended runs', [process.execPath, 'tests/support/abandoned-clusters.ts'])
  for (const file of real) await suite(file, [file, '--timeout', '900000'])
  if (await check('container image', [process.execPath, 'rootfs/image.ts', '--fast', '--only', 'oci']))
    for (const folder of imageFolders)
      if (await check(`programs for stories of cluster/${folder}`, [process.execPath, `tests/cluster/${folder}/prepare.ts`]))
        for (const file of stories(`cluster/${folder}`)) await suite(file, [file, '--timeout', '900000'])
  if (
    (await check('browser', [process.execPath, 'tests/site/prepare.ts'])) &&
    (await check('documentation site', [process.execPath, 'docs/site/build.ts']))
  )
    for (const file of stories('site')) await suite(file, [file, '--timeout', '300000'])
}

// Emulated machines are slow: only the stories that show that the image starts run here, `bun tests/vm/all.ts` runs all.
const machines = [
  ...stories('vm').filter((file) => ['boot', 'iso-uefi', 'iso-bios'].some((name) => file.endsWith(`/${name}.story.ts`))),
  ...stories('vm/tpm').filter((file) => file.endsWith('/measured.story.ts')),
]
if (process.platform !== 'linux') skip(machines, 'needs Linux')
else if (!Bun.which('qemu-system-x86_64') && !asRoot) skip(machines, 'needs QEMU: install it, or run the test command with sudo')
else if (
  (await check('QEMU', [process.execPath, 'tests/vm/prepare.ts'])) &&
  (await check('image', [process.execPath, 'rootfs/image.ts', '--fast', '--only', 'iso,pxe']))
)
  for (const file of machines) await suite(file, [file, '--timeout', '900000'])

// The factory signs a release again, with keys in files and with a token.
const signing = stories('vm/factory').filter((file) => file.endsWith('/signers.story.ts'))
if (process.platform !== 'linux') skip(signing, 'needs Linux')
else if (!asRoot) skip(signing, 'needs root, to install signers and judges: run the test command with sudo')
else for (const file of signing) await suite(file, [file, '--timeout', '900000'])

// The kernel of this machine runs the binary for arm64; only the processor is emulated.
const binaries = stories('vm/arm64').filter((file) => file.endsWith('/arm64-binary.story.ts'))
if (process.platform !== 'linux') skip(binaries, 'needs Linux')
else if (!Bun.which('qemu-aarch64') && !asRoot) skip(binaries, 'needs qemu-user: install it, or run the test command with sudo')
else if (await check('emulator of arm64', [process.execPath, 'tests/vm/arm64/prepare.ts']))
  for (const file of binaries) await suite(file, [file, '--timeout', '900000'])
finish()

function finish(): never {
  rmSync(scratch, { recursive: true, force: true })
  for (const reason of reasons) console.log(`\n-- ${reason}`)
  console.log('')
  const slowest = durations.toSorted((a, b) => b.seconds - a.seconds).slice(0, longest)
  for (const { name, seconds } of slowest) console.log(`${seconds} s: ${name}`)
  console.log(`${durations.reduce((sum, { seconds }) => sum + seconds, 0)} s: all steps\n`)
  for (const line of summary) console.log(line)
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
  process.exit(total.failed === 0 ? 0 : 1)
}
