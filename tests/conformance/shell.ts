/**
 * The shell of the original BusyBox images: ash as the sources configure it by default. It words its errors as tests expect, and
 * keeps variables whose names are no identifiers. Debian's package configures it otherwise, so it is built from Debian's sources.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cached, cached, hashOf } from '../../rootfs/build/cache.ts'
import { run } from '../../rootfs/build/run.ts'

const sourceLists = ['/etc/apt/sources.list', '/etc/apt/sources.list.d']

/** What is taken over from the default configuration: the shell and all of its features, no other program. */
const ofTheShell = /^CONFIG_(?:(?:ASH|FEATURE_SH)_\w+|ASH|SHELL_ASH|SH_IS_ASH|FEATURE_EDITING|LFS|LONG_OPTS)=y$/

/** Builds the shell, or finds it built before: the file `sh` of a folder. */
export function busyboxShell(): Promise<Cached> {
  const described = hashOf(readFileSync(import.meta.path))
  return cached('busybox-shell', { described }, async (folder) => {
    const work = mkdtempSync(join(tmpdir(), 'busybox-'))
    try {
      await fetchSource('busybox', work)
      const make = (...args: string[]) => run(['make', '--quiet', ...args], { cwd: work })
      await make('defconfig')
      const settings = lines(join(work, '.config')).filter((line) => ofTheShell.test(line))
      await make('allnoconfig')
      writeFileSync(join(work, '.config'), configurationOf(lines(join(work, '.config')), settings))
      // Takes the empty line, the default, for each question that is left.
      await run(['sh', '-c', 'yes "" | make --quiet oldconfig'], { cwd: work })
      await make('-j2', 'busybox')
      copyFileSync(join(work, 'busybox'), join(folder, 'sh'))
    } finally {
      rmSync(work, { recursive: true, force: true })
    }
  })
}

/** A configuration in which the settings take the place of what it had for the same names. */
export function configurationOf(before: readonly string[], settings: readonly string[]): string {
  const names = new Set(settings.map((line) => line.slice(0, line.indexOf('='))))
  const others = before.filter((line) => !names.has(/^(?:# )?(CONFIG_\w+)/.exec(line)?.[1] ?? ''))
  return `${[...others, ...settings].join('\n')}\n`
}

const lines = (path: string): string[] => readFileSync(path, 'utf8').trimEnd().split('\n')

/** Unpacks a package's original sources; the machine's own lists of packages stay as they are. */
async function fetchSource(name: string, into: string): Promise<void> {
  const apt = mkdtempSync(join(tmpdir(), 'sources-'))
  try {
    for (const folder of ['lists/partial', 'parts', 'download']) mkdirSync(join(apt, folder), { recursive: true })
    let offered = false
    for (const path of sourceLists.flatMap(filesOf)) {
      writeFileSync(join(apt, 'parts', path.replaceAll('/', '_')), asSources(readFileSync(path, 'utf8')))
      offered = true
    }
    if (!offered) throw new Error(`no list of Debian archives in ${sourceLists.join(' or ')}`)
    const options = [
      'Dir::Etc::sourcelist=/dev/null',
      `Dir::Etc::sourceparts=${join(apt, 'parts')}`,
      `Dir::State::Lists=${join(apt, 'lists')}`,
    ]
    const get = (...args: string[]) =>
      run(['apt-get', '-q', ...[...options, 'APT::Sandbox::User=root'].flatMap((each) => ['-o', each]), ...args], {
        cwd: join(apt, 'download'),
      })
    await get('update')
    await get('source', '--download-only', name)
    const archive = readdirSync(join(apt, 'download')).find((file) => file.includes('.orig.tar.') && !file.endsWith('.asc'))
    if (!archive) throw new Error(`the Debian archive has no original sources of "${name}"`)
    await run(['tar', '-xf', join(apt, 'download', archive), '-C', into, '--strip-components=1'])
  } finally {
    rmSync(apt, { recursive: true, force: true })
  }
}

function filesOf(path: string): string[] {
  if (!existsSync(path)) return []
  if (!path.endsWith('.d')) return [path]
  return readdirSync(path)
    .filter((file) => /\.(?:list|sources)$/.test(file))
    .map((file) => join(path, file))
}

/** The same archives with their sources in place of their packages, in both formats of apt (sources.list(5)). */
export const asSources = (text: string): string => text.replaceAll(/^deb(?=\s)/gm, 'deb-src').replaceAll(/^Types:\s.*$/gm, 'Types: deb-src')
