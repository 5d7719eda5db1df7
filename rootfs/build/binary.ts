/** The ichor binary: Bun's runtime with our program in it, and links for the names it answers to. */
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { programs } from '../../src/program-table.ts'
import { hashOf } from './cache.ts'
import { type KubernetesRelease, kubernetesReleases } from './kubernetes.ts'
import { CommandError, run } from './run.ts'
import { type Target, targets } from './target.ts'

/** Root of the repository. */
export const repository: string = join(import.meta.dir, '../..')

/** Where the results of all builds are. */
export const dist: string = join(repository, 'dist')

/** Names under which the binary is useful on the machine that built it. */
const links = Object.keys(programs).filter((name) => programs[name]?.host)

const bun = process.execPath

/** The binary reads no settings from the folder it is started in. */
const quiet = ['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig']

/** Refuses another runtime than the locked one: what compiles the binary becomes the runtime of PID 1. */
export function checkRuntime(running: string = Bun.version): void {
  const { devDependencies } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { devDependencies: { bun: string } }
  if (running !== devDependencies.bun)
    throw new Error(
      `this is Bun ${running}, the binary is compiled by ${devDependencies.bun}: run "bun install", then node_modules/.bin/bun`,
    )
}

/**
 * The packages that the bundler puts into the binary. It runs as a process of its own: a bundler that has looked for packages
 * before they were installed keeps on not finding them.
 */
export async function bundledPackages(): Promise<string[]> {
  const work = mkdtempSync(join(tmpdir(), 'ichor-metafile-'))
  try {
    const metafile = join(work, 'metafile.json')
    const flags = ['--target=bun', '--splitting', '--outdir', work, `--metafile=${metafile}`]
    await run([bun, 'build', ...flags, 'src/main.ts'], { cwd: repository })
    const { inputs } = JSON.parse(readFileSync(metafile, 'utf8')) as { inputs: Record<string, unknown> }
    const names = Object.keys(inputs).flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [])
    return [...new Set(names)].sort()
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Builds `dist/ichor`, which knows the release of Kubernetes it comes with, unless its sources are unchanged; returns whether it did. */
export async function buildBinary(
  kubernetes: KubernetesRelease = kubernetesReleases[0],
  target: Target = targets.amd64,
): Promise<{ path: string; built: boolean }> {
  checkRuntime()
  const path = join(dist, `ichor${target.suffix}`)
  const stamp = join(dist, `.ichor${target.suffix}-inputs`)
  mkdirSync(dist, { recursive: true })
  const defines = { ...(await described()), ichorKubernetes: kubernetes.version, ichorCoreDNS: kubernetes.coredns }
  const inputs = hashOf({ sources: sourceHashes(), defines, bun: Bun.version })
  const built = !existsSync(path) || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== inputs
  if (built) {
    await compileBinary(path, defines, target)
    writeFileSync(stamp, inputs)
  }
  if (target.arch === 'amd64') for (const name of links) linkTo('ichor', join(dist, name))
  return { path, built }
}

/** Compiles the program that answers to all names, with these values in it. */
export async function compileBinary(
  path: string,
  defines: Readonly<Record<string, string>>,
  target: Target = targets.amd64,
): Promise<void> {
  // The compiler names the program after its output file, so that is always called the same.
  const work = join(dirname(path), `.build-${process.pid}`)
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work)
  try {
    const workers = readdirSync(join(repository, 'src')).filter((name) => name.endsWith('-worker.ts'))
    const entries = ['src/main.ts', ...workers.sort().map((name) => `src/${name}`)]
    const define = Object.entries(defines).flatMap(([name, value]) => ['--define', `${name}=${JSON.stringify(value)}`])
    const flags = [
      '--compile',
      '--minify',
      '--bytecode',
      '--format=esm',
      '--splitting',
      `--target=${target.arch === 'amd64' ? 'bun' : target.bun}`,
      ...quiet,
    ]
    await run([bun, 'build', ...flags, '--outfile', join(work, 'ichor'), ...define, ...entries], { cwd: repository })
    renameSync(join(work, 'ichor'), path)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Computers that talosctl is built for beside this one, by the runtime's names. */
export const talosctlTargets: Readonly<Record<string, string>> = {
  'darwin-amd64': 'bun-darwin-x64',
  'darwin-arm64': 'bun-darwin-arm64',
  'linux-amd64': 'bun-linux-x64',
  'linux-arm64': 'bun-linux-arm64',
}

/** Builds `dist/talosctl-<target>`; gives its path. */
export async function compileTalosctl(target: string, folder: string = dist): Promise<string> {
  checkRuntime()
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `talosctl-${target}`)
  const define = Object.entries(await described()).flatMap(([name, value]) => ['--define', `${name}=${JSON.stringify(value)}`])
  const flags = ['--compile', '--minify', `--target=${talosctlTargets[target]}`, ...quiet, '--outfile', path]
  await run([bun, 'build', ...flags, ...define, 'src/main.ts'], { cwd: repository })
  return path
}

/** Makes or replaces a file with the content of another: a hard link, or a copy on another file system. */
export function placeFile(source: string, path: string): void {
  const unfinished = `${path}.${process.pid}`
  rmSync(unfinished, { force: true })
  try {
    linkSync(source, unfinished)
  } catch {
    copyFileSync(source, unfinished)
  }
  renameSync(unfinished, path)
  // rename(2) of two links of the same file leaves both.
  rmSync(unfinished, { force: true })
}

/** Makes or replaces a symbolic link. */
export function linkTo(target: string, path: string): void {
  const unfinished = `${path}.${process.pid}`
  rmSync(unfinished, { force: true })
  symlinkSync(target, unfinished)
  renameSync(unfinished, path)
}

/** Commit and its time, so that equal sources give equal bytes; nothing is known of a copy without its history. */
export async function described(): Promise<Record<string, string>> {
  try {
    const [sha = '', time = ''] = (await run(['git', 'log', '-1', '--format=%h %cI'], { cwd: repository })).trim().split(' ')
    const changed = (
      await run(['git', 'status', '--porcelain', '--', 'src', 'proto', 'package.json', 'bun.lock'], { cwd: repository })
    ).trim()
    return { ichorCommit: changed ? `${sha}-dirty` : sha, ichorBuilt: time }
  } catch (error) {
    if (error instanceof CommandError) return {}
    throw error
  }
}

function sourceHashes(): Record<string, string> {
  const files: string[] = ['package.json', 'bun.lock', 'tsconfig.json']
  for (const folder of ['src', 'proto']) {
    for (const entry of readdirSync(join(repository, folder), { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) files.push(join(entry.parentPath, entry.name).slice(repository.length + 1))
    }
  }
  return Object.fromEntries(files.sort().map((name) => [name, hashOf(readFileSync(join(repository, name)))]))
}
