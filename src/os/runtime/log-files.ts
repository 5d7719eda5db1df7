/**
 * Logs on the disk: what is written to a log in memory is appended to `/var/log/<id>.log`. A file is renamed to `<id>.log.1` once
 * it is large, so two of them hold the last 5 to 10 MiB. An index holds where the output of each start begins, so that the log of
 * the start before can be read when the machine is back.
 */
import * as v from 'valibot'
import type { Logger } from '../../cosi/log.ts'
import { LogRing } from '../../supervise/log-ring.ts'
import type { Kernel } from '../kernel.ts'

type Files = Pick<Kernel['files'], 'append' | 'exists' | 'lstatIfThere' | 'move' | 'readTextIfThere' | 'writeAtomic' | 'openHandle'>

/** Logs whose files are kept elsewhere, by `telemetry/audit/audit-file.ts`. */
const kept = new Set(['audit', 'audit-reads'])
/** An id that is a file name. */
const fileName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/
/** Bytes after which a file is renamed. */
const largest = 5 << 20
/** Bytes that a log may hold back: well below the capacity of a log in memory. */
const mostHeldBack = 128 * 1024
const mode = 0o640
/** Stretches of a log that are remembered; there is a new one only where bytes are missing on the disk. */
const mostStretches = 64
const piece = 64 * 1024

/** Where the output of a start begins: the file, by its inode, and the offset in it. */
const place = v.object({ ino: v.number(), offset: v.number() })
type Place = v.InferOutput<typeof place>
const index = v.record(v.string(), place)

/** Bytes of a log in a file: where they are there, and their offset in the log. */
interface Stretch {
  readonly ino: number
  readonly offset: number
  readonly from: number
  readonly length: number
}

/** What the files are written with. */
interface Dependencies {
  readonly files: Files
  readonly log: Logger
  /** The logs in memory, by name. */
  logs(): Iterable<readonly [string, LogRing]>
}

/** The files of all logs. */
export class LogFiles {
  readonly #kernelListeners = new Set<() => void>()
  /** The kernel's log, which is in no log of a service. */
  readonly kernel: LogRing = new LogRing(undefined, () => {
    for (const listener of this.#kernelListeners) listener()
  })
  readonly #dependencies: Dependencies
  readonly #folder: string
  readonly #written = new Map<string, number>()
  readonly #stretches = new Map<string, Stretch[]>()
  /** Where this start and the one before begin; undefined while there is no disk. */
  #starts: { own: Map<string, Place>; before: Readonly<Record<string, Place>> } | undefined
  #open = false
  #reported = false

  constructor(dependencies: Dependencies, folder = '/var/log') {
    this.#dependencies = dependencies
    this.#folder = folder
  }

  /** Calls back after each write to the kernel's log, until the returned function is called. */
  onKernelWrite(listener: () => void): () => void {
    this.#kernelListeners.add(listener)
    return () => this.#kernelListeners.delete(listener)
  }

  /** Begins to write; the folder exists from now on. */
  open(): void {
    this.#open = true
    this.#starts ??= { own: new Map(), before: this.#readIndex() }
  }

  /** Writes what is left, and nothing any more until `open`. */
  async close(): Promise<void> {
    if (!this.#open) return
    await this.flush()
    this.#open = false
  }

  /** Appends what was logged since the last time; with `large`, only of logs that hold back much. */
  async flush({ large = false } = {}): Promise<void> {
    const starts = this.#starts
    if (!this.#open || !starts) return
    const begun = starts.own.size
    let problem: unknown
    const attempt = async (work: () => void | Promise<void>) => {
      try {
        await work()
      } catch (error) {
        problem = error
      }
    }
    for (const [id, ring] of [...this.#dependencies.logs(), ['kernel', this.kernel] as const]) {
      const from = this.#written.get(id) ?? 0
      if (kept.has(id) || !fileName.test(id) || ring.end === from || (large && ring.end - from < mostHeldBack)) continue
      await attempt(() => {
        const bytes = ring.since(from)
        this.#append(id, { bytes, from: ring.end - bytes.length }, starts.own)
        this.#written.set(id, ring.end)
      })
    }
    if (starts.own.size > begun) await attempt(() => this.#writeIndex(Object.fromEntries(starts.own)))
    // Tried again with the next lines; a full disk is reported once.
    if (problem && !this.#reported) this.#dependencies.log.warn('write logs to disk failed', { error: problem })
    this.#reported = problem !== undefined
  }

  /** The log of the start before, in pieces; undefined when there is none. */
  previous(id: string): { read(tailLines: number): Generator<Uint8Array> } | undefined {
    const starts = this.#starts
    const from = fileName.test(id) ? starts?.before[id] : undefined
    if (!starts || !from) return undefined
    return { read: (tailLines) => lastLines([...this.#piecesBetween(id, from, starts.own.get(id))], tailLines) }
  }

  #path(id: string): string {
    return `${this.#folder}/${id}.log`
  }

  #append(id: string, { bytes, from }: { bytes: Uint8Array; from: number }, own: Map<string, Place>): void {
    const { files } = this.#dependencies
    const path = this.#path(id)
    if ((files.lstatIfThere(path)?.size ?? 0) >= largest) files.move(path, `${path}.1`)
    if (!files.exists(path)) files.append(path, '', { mode })
    const { ino = 0, size = 0 } = files.lstatIfThere(path) ?? {}
    if (!own.has(id)) own.set(id, { ino, offset: size })
    files.append(path, bytes, { mode })
    this.#stretches.set(id, grown(this.#stretches.get(id) ?? [], { ino, offset: size, from, length: bytes.length }))
  }

  /**
   * Bytes of this start's log from an offset on, or from the first one after it that is on the disk; `at` is the offset of the first.
   * Undefined when the disk has none.
   */
  read(id: string, from: number, limit: number): { at: number; bytes: Uint8Array } | undefined {
    const { files } = this.#dependencies
    if (!this.#open) return undefined
    const present = new Map(
      [`${this.#path(id)}.1`, this.#path(id)].flatMap((path) => {
        const found = files.lstatIfThere(path)?.ino
        return found === undefined ? [] : [[found, path] as const]
      }),
    )
    for (const stretch of this.#stretches.get(id) ?? []) {
      const path = present.get(stretch.ino)
      const end = stretch.from + stretch.length
      if (path === undefined || end <= from) continue
      const at = Math.max(from, stretch.from)
      const handle = files.openHandle(path, { below: this.#folder })
      try {
        return { at, bytes: handle.read(stretch.offset + at - stretch.from, Math.min(limit, end - at)) }
      } finally {
        handle.close()
      }
    }
    return undefined
  }

  /** From one place to another, which may be in the next file; to the end when the other is not there. */
  *#piecesBetween(id: string, from: Place, to: Place | undefined): Generator<Uint8Array> {
    const { files } = this.#dependencies
    // Older first; what was renamed away twice is gone.
    const present = [`${this.#path(id)}.1`, this.#path(id)].flatMap((path) => {
      const ino = files.lstatIfThere(path)?.ino
      return ino === undefined ? [] : [{ path, ino }]
    })
    const first = present.findIndex(({ ino }) => ino === from.ino)
    for (const [at, { path, ino }] of present.entries()) {
      if (at < first) continue
      const handle = files.openHandle(path, { below: this.#folder })
      try {
        const end = ino === to?.ino ? to.offset : handle.size()
        for (let offset = at === first ? from.offset : 0; offset < end; offset += piece)
          yield handle.read(offset, Math.min(piece, end - offset))
      } finally {
        handle.close()
      }
      if (ino === to?.ino) return
    }
  }

  get #indexPath(): string {
    return `${this.#folder}/.starts.json`
  }

  #readIndex(): Record<string, Place> {
    const { files, log } = this.#dependencies
    try {
      const text = files.readTextIfThere(this.#indexPath)
      return text === undefined ? {} : v.parse(index, JSON.parse(text))
    } catch (error) {
      log.warn('index of logs damaged, logs of the last start cannot be read', { path: this.#indexPath, error })
      return {}
    }
  }

  #writeIndex(places: Record<string, Place>): Promise<void> {
    return this.#dependencies.files.writeAtomic(this.#indexPath, JSON.stringify(places), { mode })
  }
}

/** The stretches of a log with another at their end; of those files that were renamed away twice, none is kept. */
function grown(stretches: readonly Stretch[], next: Stretch): Stretch[] {
  const last = stretches.at(-1)
  const adjoins = last?.ino === next.ino && last.offset + last.length === next.offset && last.from + last.length === next.from
  if (last && adjoins) return [...stretches.slice(0, -1), { ...last, length: last.length + next.length }]
  const files = [...new Set([...stretches, next].map(({ ino }) => ino))].slice(-2)
  return [...stretches, next].filter(({ ino }) => files.includes(ino)).slice(-mostStretches)
}

/** The last so many lines; all of them when the number is negative. */
function* lastLines(pieces: readonly Uint8Array[], lines: number): Generator<Uint8Array> {
  if (lines < 0) return yield* pieces
  const all = Buffer.concat(pieces)
  let at = all.length
  for (let left = lines; left > 0 && at > 0; left--) at = all.lastIndexOf(10, at - 2) + 1
  if (at < all.length) yield all.subarray(at)
}
