/** Installer image archives uploaded through the API: stored by SHA-256 until used or replaced by the next upload. */

import { pause } from '../../../timing/pause.ts'
import { within } from '../../../timing/within.ts'
import type { Kernel } from '../../kernel.ts'
import { hasRoom, roomFor, writeBounded } from './bounded-file.ts'
import { ReleaseError } from './release.ts'

type UploadKernel = {
  readonly files: Pick<
    Kernel['files'],
    'lstatIfThere' | 'readText' | 'mkdirAll' | 'list' | 'removeFile' | 'move' | 'openWrite' | 'exists' | 'statfs'
  >
}

const scheme = 'upload:'
const digest = /^[0-9a-f]{64}$/
/** On the disk if there is one with room for it, else in memory. */
const folders = { disk: '/var/system/uploads', memory: '/run/ichor/uploads' } as const
/** Milliseconds: idle timeout of the sender, and limit for the whole upload, since uploads are exclusive. */
const idle = 60_000
const longest = 60 * 60_000

/** Whether a reference names an uploaded archive. */
export const isUpload = (reference: string): boolean => reference.startsWith(scheme)

/** Finds the archive of a reference. Throws ReleaseError. */
export function findUpload({ files }: UploadKernel, reference: string): { path: string; size: number } {
  const sum = reference.slice(scheme.length)
  if (!digest.test(sum)) throw new ReleaseError(`"${reference.slice(0, 100)}" is not the reference of an uploaded archive`)
  const found = archiveOf({ files }, sum)
  if (found) return found
  throw new ReleaseError(`the archive "${reference}" does not exist: upload it again`)
}

function archiveOf({ files }: Pick<UploadKernel, 'files'>, sum: string): { path: string; size: number } | undefined {
  for (const folder of Object.values(folders)) {
    const path = `${folder}/${sum}.tar`
    const stats = files.lstatIfThere(path)
    if (stats) return { path, size: stats.size }
  }
  return undefined
}

/** A chunk of an archive. The first one may contain the SHA-256 of the whole. */
interface Piece {
  readonly data: Uint8Array
  readonly sha256: string
}

/** Destination and time limits of an upload. */
interface Target {
  readonly onDisk: boolean
  readonly idle?: number
  readonly longest?: number
}

/** Receives archives, one at a time: concurrent uploads would remove each other's temporary files. */
export class Uploads {
  readonly #kernel: UploadKernel
  #busy = false

  constructor(kernel: UploadKernel) {
    this.#kernel = kernel
  }

  /** Stores an uploaded archive and returns its reference. The previous upload is removed; an archive that exists is not read again. */
  async take(pieces: AsyncIterable<Piece>, target: Target): Promise<string> {
    if (this.#busy) throw new ReleaseError('another upload to this node is in progress: wait until it is done')
    this.#busy = true
    try {
      return await take(this.#kernel, pieces, target)
    } finally {
      this.#busy = false
    }
  }
}

async function take(
  kernel: UploadKernel,
  pieces: AsyncIterable<Piece>,
  { onDisk, idle: silence = idle, longest: whole = longest }: Target,
): Promise<string> {
  const sent = pieces[Symbol.asyncIterator]()
  const ends = performance.now() + whole
  const next = () => {
    const left = ends - performance.now()
    const limit = Math.min(silence, left)
    if (limit > 0) return within(sent.next(), limit, () => new ReleaseError(`no data received within ${limit / 1000} s: upload it again`))
    throw new ReleaseError(`upload not complete within ${whole / 1000} s: retry over a faster connection`)
  }
  const rest = { next: async () => next(), return: () => sent.return?.() }
  try {
    const first = await rest.next()
    const promised = first.done ? '' : first.value.sha256
    if (promised !== '' && !digest.test(promised)) throw new ReleaseError('the SHA-256 of the archive must be 64 digits of hex')
    if (promised !== '' && archiveOf(kernel, promised)) return scheme + promised
    const chunks = async function* () {
      for (let next = first; !next.done; next = await rest.next()) yield next.value.data
    }
    const sum = await store(kernel, chunks(), onDisk, promised)
    return scheme + sum
  } finally {
    // A silent sender would block its generator, and with it all other uploads.
    await Promise.race([rest.return(), pause(1000)])
  }
}

/** Writes an archive under its SHA-256. */
async function store({ files }: UploadKernel, chunks: AsyncIterable<Uint8Array>, onDisk: boolean, promised: string): Promise<string> {
  for (const each of Object.values(folders).filter((path) => files.exists(path)))
    for (const name of files.list(each)) files.removeFile(`${each}/${name}`)
  const disk = onDisk && hasRoom({ files })
  const folder = disk ? folders.disk : folders.memory
  files.mkdirAll(folder, { mode: 0o700 })
  const draft = `${folder}/.${Bun.randomUUIDv7()}`
  const hash = new Bun.CryptoHasher('sha256')
  const hashed = async function* () {
    for await (const chunk of chunks) {
      hash.update(chunk)
      yield chunk
    }
  }
  await writeBounded({ files }, draft, hashed(), { room: roomFor({ files }, disk), what: 'the archive' })
  const sum = hash.digest('hex')
  if (promised !== '' && sum !== promised) {
    files.removeFile(draft)
    throw new ReleaseError('the archive was modified or truncated in transfer: upload it again')
  }
  files.move(draft, `${folder}/${sum}.tar`)
  return sum
}
