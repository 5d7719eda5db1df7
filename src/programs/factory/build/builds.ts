/** What was built, in files of bounded size in all; the one that was not needed for the longest time makes room. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { failedWith } from '../../../wire/errno.ts'
import { FactoryError } from '../factory-error.ts'

/** Bytes of all builds together, unless another limit is given. */
export const buildsLimit = 16 * 2 ** 30

/** Builds at a time, those that may wait, and milliseconds for one. */
const mostAtOnce = 4
const mostWaiting = 64
const timeLimit = 20 * 60_000

/** Writes a file, or fills a folder, at a path. */
export type Build = (path: string, signal: AbortSignal) => Promise<void>

/** Files by what they were built of. One that is requested twice at a time is built once, and goes on when its clients leave. */
export class Builds {
  readonly #folder: string
  readonly #own: boolean
  /** Names of the files, the one that was not needed for the longest time first. */
  readonly #kept: Set<string>
  readonly #running = new Map<string, Promise<string>>()
  readonly #waiting: (() => void)[] = []
  #active = 0

  /** Without a folder they are in one of their own until `close`. */
  constructor(
    folder?: string,
    readonly limit = buildsLimit,
  ) {
    this.#own = folder === undefined
    this.#folder = folder ?? mkdtempSync(join(tmpdir(), 'ichor-factory-'))
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    chmodSync(this.#folder, 0o700)
    // What a run that was killed has left is not whole.
    const names = readdirSync(this.#folder)
    for (const name of names) if (/\.new(?:\.|$)/.test(name)) rmSync(join(this.#folder, name), { recursive: true })
    const files = names
      .filter((name) => /^[0-9a-f]{64}$/.test(name))
      .map((name) => ({ name, made: statSync(join(this.#folder, name)).mtimeMs }))
    this.#kept = new Set(files.sort((a, b) => a.made - b.made).map(({ name }) => name))
  }

  /** The file of `inputs`, all that its content follows from. Throws FactoryError. */
  take(inputs: readonly string[], build: Build): Promise<string> {
    const name = new Bun.CryptoHasher('sha256').update(JSON.stringify(inputs)).digest('hex')
    const path = join(this.#folder, name)
    const running = this.#running.get(name)
    if (running) return running
    if (this.#kept.delete(name) && sizeOf(path) !== undefined) {
      this.#kept.add(name)
      return Promise.resolve(path)
    }
    const made = this.#make(name, build).finally(() => this.#running.delete(name))
    this.#running.set(name, made)
    return made
  }

  /** Removes the folder, unless it was given. */
  close(): void {
    if (this.#own) rmSync(this.#folder, { recursive: true, force: true })
  }

  async #make(name: string, build: Build): Promise<string> {
    const path = join(this.#folder, name)
    const draft = `${path}.new`
    await this.#turn()
    const limit = AbortSignal.timeout(timeLimit)
    try {
      await build(draft, limit)
      this.#makeRoom(sizeOf(draft) ?? 0)
      renameSync(draft, path)
      this.#kept.add(name)
      return path
    } catch (error) {
      rmSync(draft, { recursive: true, force: true })
      if (failedWith(error, 'ENOSPC'))
        throw new FactoryError(507, 'no space is left for what is built here: lower --cache-size or free some')
      if (limit.aborted) throw new FactoryError(503, `the image was not built within ${timeLimit / 60_000} minutes`)
      throw error
    } finally {
      // The next one that waits takes the place of this one.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#active--
    }
  }

  async #turn(): Promise<void> {
    if (this.#active < mostAtOnce) {
      this.#active++
      return
    }
    if (this.#waiting.length >= mostWaiting) throw new FactoryError(503, 'too many images are being built: retry later')
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Removes files until one of this size fits. */
  #makeRoom(size: number): void {
    if (size > this.limit) throw new FactoryError(507, `the image takes ${size} bytes here, --cache-size allows ${this.limit}`)
    const files = [...this.#kept].map((name) => ({ name, size: sizeOf(join(this.#folder, name)) ?? 0 }))
    let held = files.reduce((sum, each) => sum + each.size, size)
    for (const { name, size: freed } of files) {
      if (held <= this.limit) break
      rmSync(join(this.#folder, name), { recursive: true, force: true })
      this.#kept.delete(name)
      held -= freed
    }
  }
}

const blockSize = 512

/** Bytes that a file takes on its disk, or a folder with its files. */
function sizeOf(path: string): number | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats?.isDirectory()) return stats && stats.blocks * blockSize
  return readdirSync(path).reduce((sum, name) => sum + (sizeOf(join(path, name)) ?? 0), 0)
}
