/** Archives of installer images that were sent through the API: kept under their SHA-256 until they are used, or the next is sent. */
import { failedWith } from '../../../wire/errno.ts'
import { parseMeminfo } from '../../../wire/proc/memory.ts'
import type { Kernel } from '../../kernel.ts'
import { ReleaseError } from './release.ts'

type Doors = {
  readonly files: Pick<
    Kernel['files'],
    'lstatIfThere' | 'readText' | 'mkdirAll' | 'list' | 'removeFile' | 'move' | 'openWrite' | 'exists' | 'statfs'
  >
}

const scheme = 'upload:'
const digest = /^[0-9a-f]{64}$/
/** On the disk where there is one, else in memory. */
const folders = { disk: '/var/system/uploads', memory: '/run/ichor/uploads' } as const
/** A release is a fraction of it. In memory an archive takes a quarter at most. */
const largest = 2 ** 30
const shareOfMemory = 1 / 4
/** Milliseconds that a sender may pause, and that the whole may take: nobody else can send meanwhile. */
const idle = 60_000
const longest = 60 * 60_000

/** Whether a reference is that of an archive that was sent. */
export const isUpload = (reference: string): boolean => reference.startsWith(scheme)

/** Where the archive of a reference lies. Throws ReleaseError. */
export function findUpload({ files }: Doors, reference: string): { path: string; size: number } {
  const sum = reference.slice(scheme.length)
  if (!digest.test(sum)) throw new ReleaseError(`"${reference.slice(0, 100)}" is not the name of an archive that was sent`)
  const found = archiveOf({ files }, sum)
  if (found) return found
  throw new ReleaseError(`the archive "${reference}" is not here: send it again`)
}

function archiveOf({ files }: Pick<Doors, 'files'>, sum: string): { path: string; size: number } | undefined {
  for (const folder of Object.values(folders)) {
    const path = `${folder}/${sum}.tar`
    const stats = files.lstatIfThere(path)
    if (stats) return { path, size: stats.size }
  }
  return undefined
}

/** A piece of an archive; the first one may say the SHA-256 of the whole. */
interface Piece {
  readonly data: Uint8Array
  readonly sha256: string
}

/** Where an archive goes to, how long its sender may pause, and how long the whole may take. */
interface Target {
  readonly onDisk: boolean
  readonly idle?: number
  readonly longest?: number
}

let busy = false

/**
 * Takes an archive in, piece by piece; what was sent before goes. One that is here is not taken again. Gives its reference.
 * One at a time: two would remove each other's drafts, which take memory until they are closed.
 */
export async function takeUpload(doors: Doors, pieces: AsyncIterable<Piece>, target: Target): Promise<string> {
  if (busy) throw new ReleaseError('another archive is being sent to this node: wait until it is there')
  busy = true
  try {
    return await take(doors, pieces, target)
  } finally {
    busy = false
  }
}

async function take(
  doors: Doors,
  pieces: AsyncIterable<Piece>,
  { onDisk, idle: pause = idle, longest: whole = longest }: Target,
): Promise<string> {
  const sent = pieces[Symbol.asyncIterator]()
  const ends = performance.now() + whole
  const next = () => {
    const left = ends - performance.now()
    if (left > 0) return within(sent.next(), Math.min(pause, left))
    throw new ReleaseError(`the archive was not there within ${whole / 1000} s: send it again over a faster connection`)
  }
  const rest = { next: async () => next(), return: () => sent.return?.() }
  try {
    const first = await rest.next()
    const promised = first.done ? '' : first.value.sha256
    if (promised !== '' && !digest.test(promised)) throw new ReleaseError('the SHA-256 of the archive must be 64 digits of hex')
    if (promised !== '' && archiveOf(doors, promised)) return scheme + promised
    const chunks = async function* () {
      for (let next = first; !next.done; next = await rest.next()) yield next.value.data
    }
    const sum = await store(doors, chunks(), onDisk, promised)
    return scheme + sum
  } finally {
    // A sender that fell silent would keep its generator, and everybody else, waiting.
    await Promise.race([rest.return(), Bun.sleep(1000)])
  }
}

async function within<T>(next: Promise<T>, milliseconds: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new ReleaseError(`nothing of the archive came within ${milliseconds / 1000} s: send it again`)),
    milliseconds,
  )
  return Promise.race([next, promise]).finally(() => clearTimeout(timer))
}

function roomFor({ files }: Doors, onDisk: boolean): number {
  if (onDisk) return largest
  const { memtotal = 0 } = parseMeminfo(files.readText('/proc/meminfo'))
  return Math.min(largest, memtotal * 1024 * shareOfMemory)
}

/** Writes an archive under its SHA-256. */
async function store({ files }: Doors, chunks: AsyncIterable<Uint8Array>, onDisk: boolean, promised: string): Promise<string> {
  const folder = onDisk ? folders.disk : folders.memory
  files.mkdirAll(folder, { mode: 0o700 })
  for (const name of files.list(folder)) files.removeFile(`${folder}/${name}`)
  const draft = `${folder}/.${Bun.randomUUIDv7()}`
  const room = roomFor({ files }, onDisk)
  const output = files.openWrite(draft, { mode: 0o600 })
  const hash = new Bun.CryptoHasher('sha256')
  let size = 0
  const { promise: broken, reject } = Promise.withResolvers<never>()
  output.on('error', reject)
  broken.catch(() => {})
  try {
    for await (const chunk of chunks) {
      size += chunk.length
      if (size > room)
        throw new ReleaseError(`the archive is larger than ${Math.floor(room / 2 ** 20)} MiB, which is what this node has for it`)
      hash.update(chunk)
      if (!output.write(chunk)) await Promise.race([broken, new Promise((resolve) => output.once('drain', resolve))])
    }
    await Promise.race([broken, new Promise<void>((resolve) => output.end(() => resolve()))])
  } catch (error) {
    output.destroy()
    if (files.exists(draft)) files.removeFile(draft)
    if (failedWith(error, 'ENOSPC')) throw new ReleaseError('there is no room for the archive on this node')
    throw error
  }
  const sum = hash.digest('hex')
  if (promised !== '' && sum !== promised) {
    files.removeFile(draft)
    throw new ReleaseError('the archive was changed while it was sent, or not transferred whole: send it again')
  }
  files.move(draft, `${folder}/${sum}.tar`)
  return sum
}
