/** Backups in a folder on a volume of this node. */
import type { Kernel } from '../../kernel.ts'
import { type BackupName, backupNameOf, matchesName } from '../resources/backup-name.ts'
import { chunksOf, sha256Of, writeChunks } from './files.ts'
import { type BackupTarget, mostForeign, type StoredBackup, type TakenBackup, type TargetContents } from './target.ts'

/** What a folder of backups uses of the machine. */
export type FolderFiles = Pick<
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
  /** Digits of the cluster whose backups these are; undefined where they are of any cluster. */
  readonly cluster: string | undefined
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
  readonly #files: FolderFiles
  /** States by name, size and time of the file, so that each is hashed once. */
  readonly #states = new Map<string, StoredBackup['state']>()

  constructor(place: FolderPlace, files: FolderFiles) {
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
      if (named && this.#isOwn(named) && entry.isFile()) backups.push(await this.#stored(entry.name, named, signal))
      else if (foreign.length < mostForeign && !isPartial(entry.name)) foreign.push(entry.name)
    }
    return { backups, foreign }
  }

  async store(backup: TakenBackup, signal: AbortSignal): Promise<void> {
    const { part } = this.begin(backup)
    await writeChunks(this.#files, part, chunksOf(this.#files, backup.path, signal))
    if (!(await this.finish(backup, signal)))
      throw new Error(`"${this.#place.folder}" returned other bytes than were written: its disk is failing`)
  }

  /** Makes room for a backup; returns the file that it is written to, and with `resume` how many bytes of it are there already. */
  begin({ name, size }: Pick<TakenBackup, 'name' | 'size'>, { resume = false } = {}): { part: string; offset: number } {
    const folder = this.#mounted()
    const files = this.#files
    files.mkdirAll(folder, { mode: 0o700 })
    // Workloads may write to the volume.
    if (files.realpath(folder) !== folder) throw new Error(`"${folder}" leads elsewhere by a link: remove the link`)
    const part = partOf(name)
    // Of a backup that was interrupted by a power cut.
    const written = (entry: string) => files.lstatIfThere(`${folder}/${entry}`)?.size ?? 0
    for (const entry of files.listEntries(folder))
      if (isPartial(entry.name) && !(resume && entry.name === part && entry.isFile() && written(part) <= size))
        files.removeFile(`${folder}/${entry.name}`)
    const offset = written(part)
    const { available } = files.statfs(folder)
    if (available < size - offset + reserve)
      throw new Error(`"${folder}" has ${megabytes(available)} of space left, the backup has ${megabytes(size)}`)
    return { part: `${folder}/${part}`, offset }
  }

  /** Gives a backup that was written whole its name; false when it has other contents, which are removed. */
  async finish({ name, sha256 }: Pick<TakenBackup, 'name' | 'sha256'>, signal: AbortSignal): Promise<boolean> {
    const folder = this.#mounted()
    const files = this.#files
    const part = `${folder}/${partOf(name)}`
    if ((await sha256Of(chunksOf(files, part, signal))) !== sha256) {
      files.removeFile(part)
      return false
    }
    files.move(part, `${folder}/${name}`)
    await files.syncFile(`${folder}/${name}`)
    return true
  }

  async *read(name: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    yield* chunksOf(this.#files, `${this.#mounted()}/${name}`, signal)
  }

  async remove(name: string): Promise<void> {
    this.#files.removeFile(`${this.#mounted()}/${name}`)
  }

  async #stored(name: string, named: BackupName, signal: AbortSignal): Promise<StoredBackup> {
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

  #isOwn({ cluster }: BackupName): boolean {
    return this.#place.cluster === undefined || this.#place.cluster === cluster
  }

  #mounted(): string {
    const missing = this.#place.missing()
    if (missing) throw new Error(missing)
    return this.#place.folder
  }
}

const partOf = (name: string): string => `.${name}.part`
const isPartial = (name: string): boolean => name.endsWith('.age.part') && backupNameOf(name.slice(1, -'.part'.length)) !== undefined
const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
