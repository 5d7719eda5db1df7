/**
 * The artifacts of an overlay: files below `artifacts/` of its image. The programs below `installers/` are left alone: they are
 * programs of strangers that would run on the machine that builds, as its user.
 */
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../build/failure.ts'
import { imageEntries } from '../container/image-entries.ts'

/** Contents by their paths below `artifacts/`. */
export type Artifacts = ReadonlyMap<string, Buffer>

const prefix = 'artifacts/'
const mostFiles = 20_000
const mostBytes = 256 << 20

/** Counts what is taken. Throws UsageError. */
class Budget {
  #files = 0
  #bytes = 0

  constructor(readonly origin: string) {}

  take(bytes: number): void {
    this.#bytes += bytes
    if (++this.#files > mostFiles) throw new UsageError(`overlay "${this.origin}": it has more than ${mostFiles} files`)
    if (this.#bytes > mostBytes) throw new UsageError(`overlay "${this.origin}": its artifacts have more than ${mostBytes >> 20} MiB`)
  }
}

/** The artifacts of an image, or of a folder that is laid out as the root of one. Throws UsageError and RegistryError. */
export async function artifactsOf(image: string, arch: string): Promise<Artifacts> {
  const unpacked = existsSync(join(image, prefix)) && !existsSync(join(image, 'index.json'))
  const artifacts = unpacked ? artifactsIn(image) : await artifactsOfImage(image, arch)
  if (artifacts.size === 0) throw new UsageError(`overlay "${image}": it has no files below "${prefix}"`)
  return artifacts
}

function artifactsIn(folder: string): Artifacts {
  const budget = new Budget(folder)
  const below = join(folder, prefix)
  const found = (readdirSync(below, { recursive: true, encoding: 'utf8' }) as string[]).sort().flatMap((path) => {
    const stats = lstatSync(join(below, path))
    if (!stats.isFile()) return []
    budget.take(stats.size)
    return [[path, readFileSync(join(below, path))] as const]
  })
  return new Map(found)
}

async function artifactsOfImage(image: string, arch: string): Promise<Artifacts> {
  const budget = new Budget(image)
  const found = new Map<string, Buffer>()
  for await (const { name, type, size, content } of imageEntries(image, arch)) {
    const steps = name.split('/').filter((step) => step !== '' && step !== '.')
    const path = steps.join('/')
    if (!path.startsWith(prefix) || steps.includes('..')) continue
    if (steps.some((step) => step.startsWith('.wh.')))
      throw new UsageError(`overlay "${image}": a layer removes "${path}", which is not supported: build the image in one layer`)
    if (type !== 'file') continue
    budget.take(size)
    found.set(path.slice(prefix.length), Buffer.concat(await Array.fromAsync(content)))
  }
  return found
}
