/** Backups in a folder on a volume of this node. */
import type { Kernel } from '../../kernel.ts'
import { backupNameOf, matchesName } from '../resources/backup-name.ts'
import { chunksOf, sha256Of, writeChunks } from './files.ts'
import { type BackupTarget, mostForeign, type StoredBackup, type TakenBackup, type TargetContents } from './target.ts'

type Files = Pick<
  Kernel['files'],
  | 'exists'
  | 'lstatIfThere'
  | 'listEntries'
  | 'mkdirAll'
  | 'move'
  | 'openWrite'
  | 'readSlice'
  | 'realpath'
  | 'remove'
  | 'removeFile'
  | 'syncFile'
  | 'statfs'
>

/** A folder of backups. */
export interface FolderPlace {
  readonly name: string
  /** Digits of the cluster whose backups these are. */
  readonly cluster: string
  readonly folder: string
  /** Why there is no folder at present; undefined when its volume is mounted. */
  missing(): string | undefined
}

/** Room that is left on the volume, in bytes. */
const reserve = 16 << 20

/** Backups in a folder. A file is written beside its name, and gets it when it is whole. */
export class FolderTarget implements BackupTarget {
  readonly name: string
  readonly #place: FolderPlace
  readonly #files: Files
  /** States by name, size and time of the file, so that each is hashed once. */
  readonly #states = new Map<string, StoredBackup['state']>()

  constructor(place: FolderPlace, files: Files) {
    this.name = place.name
    this.#place = place
    this.#files = files
  }

  async contents(signal: AbortSignal): Promise<TargetContents> {
    const folder = this.#mounted()
    if (!this.#files.exists(folder)) return { backups: [], foreign: [] }
    const backups: StoredBackup[] = []
    const foreign: string[] = []
    for (const entry of this.#files.listEntries(folder)) {
      const named = backupNameOf(entry.name)
      if (named?.cluster === this.#place.cluster && entry.isFile()) backups.push(await this.#stored(entry.name, named, signal))
      else if (foreign.length < mostForeign && !isPartial(entry.name)) foreign.push(entry.name)
    }
    return { backups, foreign }
  }

  async store(backup: TakenBackup, signal: AbortSignal): Promise<void> {
    const folder = this.#mounted()
    const files = this.#files
    files.mkdirAll(folder, { mode: 0o700 })
    // Workloads may write to the volume.
    if (files.realpath(folder) !== folder) throw new Error(`"${folder}" leads elsewhere by a link: remove the link`)
    // Of a backup that was interrupted by a power cut.
    for (const { name } of files.listEntries(folder)) if (isPartial(name)) files.removeFile(`${folder}/${name}`)
    const { available } = files.statfs(folder)
    if (available < backup.size + reserve)
      throw new Error(`"${folder}" has ${megabytes(available)} of space left, the backup has ${megabytes(backup.size)}`)
    const part = `${folder}/.${backup.name}.part`
    await writeChunks(files, part, chunksOf(files, backup.path, signal))
    if ((await sha256Of(chunksOf(files, part, signal))) !== backup.sha256) {
      files.removeFile(part)
      throw new Error(`"${folder}" returned other bytes than were written: its disk is failing`)
    }
    files.move(part, `${folder}/${backup.name}`)
    await files.syncFile(`${folder}/${backup.name}`)
  }

  async *read(name: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    yield* chunksOf(this.#files, `${this.#mounted()}/${name}`, signal)
  }

  async remove(name: string): Promise<void> {
    this.#files.removeFile(`${this.#mounted()}/${name}`)
  }

  async #stored(name: string, named: NonNullable<ReturnType<typeof backupNameOf>>, signal: AbortSignal): Promise<StoredBackup> {
    const path = `${this.#mounted()}/${name}`
    const { size = 0, mtimeMs = 0 } = this.#files.lstatIfThere(path) ?? {}
    const key = `${name} ${size} ${mtimeMs}`
    let state = this.#states.get(key)
    if (!state) {
      state = matchesName(name, await sha256Of(chunksOf(this.#files, path, signal))) ? 'intact' : 'damaged'
      if (this.#states.size > 10_000) this.#states.clear()
      this.#states.set(key, state)
    }
    return { ...named, name, size, state }
  }

  #mounted(): string {
    const missing = this.#place.missing()
    if (missing) throw new Error(missing)
    return this.#place.folder
  }
}

const isPartial = (name: string): boolean => name.endsWith('.age.part') && backupNameOf(name.slice(1, -'.part'.length)) !== undefined
const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
