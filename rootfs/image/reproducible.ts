/**
 * Whether the same inputs give the same bytes: everything is made a second time from a copy of the sources at another path,
 * with an empty cache, later, in another time zone and language, and, where this is root, as another user; then every
 * product is compared.
 */
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repository } from '../build/binary.ts'
import { hashFile } from '../build/cache.ts'
import { task } from '../build/progress.ts'
import { run } from '../build/run.ts'

/** Products differ. */
export class DifferenceError extends Error {
  override name = 'DifferenceError'
}

/** nobody and nogroup of Debian. */
const other = { uid: 65_534, gid: 65_534 }

/** What is needed of the source tree to build; results of builds and installed packages are not. */
const left = new Set(['dist', 'node_modules'])

/** Makes everything again with these arguments and compares it with the products in `output`. Throws DifferenceError. */
export async function checkReproducible(names: readonly string[], output: string, args: readonly string[], keyPath: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-again-'))
  const shown = task('making everything again, from nothing')
  try {
    const sources = join(folder, 'another', 'place')
    mkdirSync(sources, { recursive: true })
    for (const name of readdirSync(repository))
      if (!left.has(name)) cpSync(join(repository, name), join(sources, name), { recursive: true })
    const key = join(folder, 'key.pem')
    writeFileSync(key, readFileSync(keyPath), { mode: 0o600 })
    const made = join(folder, 'made')
    for (const name of ['cache', 'home', 'go', 'made']) mkdirSync(join(folder, name))
    const root = process.getuid?.() === 0
    if (root) await handOver(folder)
    const env = {
      PATH: process.env.PATH,
      HOME: join(folder, 'home'),
      XDG_CACHE_HOME: join(folder, 'cache'),
      GOPATH: join(folder, 'go'),
      GOPROXY: process.env.GOPROXY ?? (await run(['go', 'env', 'GOPROXY'])).trim(),
      GOSUMDB: process.env.GOSUMDB ?? (await run(['go', 'env', 'GOSUMDB'])).trim(),
      GOFLAGS: process.env.GOFLAGS,
      TZ: 'Pacific/Kiritimati',
      LANG: 'C',
      LC_ALL: 'C',
    }
    const bun = process.execPath
    const command = [bun, join(sources, 'rootfs/image.ts'), ...args, '--key', key, '--output', made]
    const child = Bun.spawn(root ? asOther(command) : command, {
      cwd: folder,
      env,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const heard: string[] = []
    const listen = async () => {
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        heard.push(...text.split('\n').filter(Boolean))
        const last = heard.at(-1)
        if (last) shown.at(last.slice(0, 100))
        heard.splice(0, Math.max(0, heard.length - 30))
      }
    }
    await Promise.all([new Response(child.stdout).text(), listen()])
    if ((await child.exited) !== 0) throw new DifferenceError(`the second build failed:\n${heard.join('\n')}`)
    await compare(names, output, made)
    shown.done(`${names.length} products are the same, byte by byte`)
  } catch (error) {
    shown.failed()
    throw error
  } finally {
    chmodSync(folder, 0o700)
    await run(['chmod', '-R', 'u+w', folder]) // Go keeps its modules read-only
    rmSync(folder, { recursive: true, force: true })
  }
}

async function compare(names: readonly string[], output: string, made: string): Promise<void> {
  const differing: string[] = []
  for (const name of names) {
    const second = join(made, name)
    if (!existsSync(second)) differing.push(`${name} was not made again`)
    else if ((await hashFile(join(output, name))).sha256 !== (await hashFile(second)).sha256)
      differing.push(`${name} differs from byte ${await firstDifference(join(output, name), second)} on`)
  }
  if (differing.length) throw new DifferenceError(`not the same bytes:\n  ${differing.join('\n  ')}`)
}

async function firstDifference(one: string, other: string): Promise<number> {
  const [a, b] = [readFileSync(one), readFileSync(other)]
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at += 4096) {
    const end = Math.min(at + 4096, shorter)
    if (a.subarray(at, end).equals(b.subarray(at, end))) continue
    for (let byte = at; byte < end; byte++) if (a[byte] !== b[byte]) return byte
  }
  return shorter
}

async function handOver(folder: string): Promise<void> {
  chmodSync(folder, 0o755)
  chownSync(folder, other.uid, other.gid)
  await run(['chown', '-R', `${other.uid}:${other.gid}`, folder])
}

const asOther = (command: readonly string[]) => ['setpriv', `--reuid=${other.uid}`, `--regid=${other.gid}`, '--clear-groups', ...command]
