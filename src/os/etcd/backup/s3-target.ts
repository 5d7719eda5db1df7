/** Backups in a bucket of an S3-compatible server. */
import type { Kernel } from '../../kernel.ts'
import { backupNameOf } from '../resources/backup-name.ts'
import { type S3Client, S3Error } from './s3-client.ts'
import { type BackupTarget, mostForeign, type StoredBackup, type TakenBackup, type TargetContents } from './target.ts'

/** A bucket with backups. */
export interface BucketPlace {
  readonly name: string
  /** Digits of the cluster whose backups these are. */
  readonly cluster: string
  /** Folder in the bucket, without slashes around it. */
  readonly prefix: string
}

/** Bytes of a part, and of what is read at once: they are held in memory. */
export const partLength = 16 << 20
/** Pages of a thousand objects. */
const mostPages = 20

/** Backups in a bucket. The server verifies the SHA-256 of each part, and the size is compared afterwards. */
export class S3Target implements BackupTarget {
  readonly name: string
  readonly #place: BucketPlace
  readonly #client: S3Client
  readonly #files: Pick<Kernel['files'], 'readSlice'>

  constructor(place: BucketPlace, client: S3Client, files: Pick<Kernel['files'], 'readSlice'>) {
    this.name = place.name
    this.#place = place
    this.#client = client
    this.#files = files
  }

  async contents(signal: AbortSignal): Promise<TargetContents> {
    const backups: StoredBackup[] = []
    const foreign: string[] = []
    const prefix = `${this.#place.prefix}/`
    let token: string | undefined
    for (let page = 0; ; page++) {
      if (page === mostPages)
        throw new Error(`more than ${mostPages * 1000} objects are below "${prefix}": give backups a prefix of their own`)
      const { objects, next } = await this.#client.list(prefix, token, signal)
      for (const { key, size } of objects) {
        const name = key.slice(prefix.length)
        const named = backupNameOf(name)
        if (named?.cluster === this.#place.cluster) backups.push({ ...named, name, size, state: 'unchecked' })
        else if (foreign.length < mostForeign && name !== '') foreign.push(name)
      }
      token = next
      if (token === undefined) return { backups, foreign }
    }
  }

  async store(backup: TakenBackup, signal: AbortSignal): Promise<void> {
    const key = this.#key(backup.name)
    if (backup.size <= partLength) await this.#client.put(key, await this.#files.readSlice(backup.path, 0, partLength), signal)
    else await this.#client.putParts(key, this.#parts(backup), signal)
    const size = await this.#client.size(key, signal)
    if (size !== backup.size) throw new S3Error(`"${key}" has ${size} bytes in the bucket, ${backup.size} were stored`, 200)
  }

  async *read(name: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const key = this.#key(name)
    const size = await this.#client.size(key, signal)
    for (let at = 0; at < size; at += partLength) {
      const bytes = await this.#client.range(key, at, Math.min(partLength, size - at), signal)
      // In pieces that fit into a message.
      for (let part = 0; part < bytes.length; part += pieceLength) yield bytes.subarray(part, part + pieceLength)
    }
  }

  remove(name: string, signal: AbortSignal): Promise<void> {
    return this.#client.remove(this.#key(name), signal)
  }

  #key(name: string): string {
    return `${this.#place.prefix}/${name}`
  }

  async *#parts({ path, size }: TakenBackup): AsyncGenerator<Uint8Array, void> {
    for (let at = 0; at < size; at += partLength) yield await this.#files.readSlice(path, at, partLength)
  }
}

const pieceLength = 256 << 10
