/** Debian packages on this computer, read by `dpkg-deb`. */
import { existsSync } from 'node:fs'
import type { SbomPart } from '../../../oci/spdx.ts'
import { type TarEntry, tarEntries } from '../../../wire/tar/read.ts'
import { UsageError } from '../failure.ts'

/** A Debian package file. */
export interface DebianPackage {
  readonly part: SbomPart
  /** Its files, once. Throws UsageError when the package is damaged. */
  entries(): AsyncGenerator<TarEntry, void>
}

/** Opens a package. Throws UsageError for a file that is none. */
export async function openPackage(path: string): Promise<DebianPackage> {
  if (!existsSync(path)) throw new UsageError(`package "${path}": there is no such file`)
  if (!Bun.which('dpkg-deb'))
    throw new UsageError(`package "${path}": "dpkg-deb" is needed to read it: install dpkg, or unpack it into the folder`)
  const field = async (name: string) => (await output(path, ['--field', path, name])).trim()
  const [name, version, arch] = await Promise.all([field('Package'), field('Version'), field('Architecture')])
  return {
    part: {
      name: name ?? '',
      version: version ?? '',
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(version ?? '')}?arch=${arch}`,
      source: 'Debian package',
      sha256: new Bun.CryptoHasher('sha256').update(await Bun.file(path).bytes()).digest('hex'),
    },
    async *entries() {
      const child = Bun.spawn(['dpkg-deb', '--fsys-tarfile', path], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
      const complaint = new Response(child.stderr).text()
      try {
        yield* tarEntries(child.stdout)
        if ((await child.exited) !== 0) throw new UsageError(`package "${path}": ${oneLine(await complaint)}`)
      } finally {
        child.kill()
      }
    },
  }
}

async function output(path: string, args: readonly string[]): Promise<string> {
  const child = Bun.spawn(['dpkg-deb', ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [text, complaint, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new UsageError(`package "${path}": ${oneLine(complaint)}`)
  return text
}

const oneLine = (text: string): string => text.trim().split('\n')[0] ?? ''
