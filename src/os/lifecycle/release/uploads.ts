/** Archives of installer images that were sent through the API: kept under their SHA-256 until they are used, or the next is sent. */
import type { Kernel } from '../../kernel.ts'
import { ReleaseError } from './release.ts'

type Doors = {
  readonly files: Pick<Kernel['files'], 'lstatIfThere' | 'mkdirAll' | 'list' | 'removeFile' | 'move' | 'openWrite' | 'exists' | 'statfs'>
}

const scheme = 'upload:'
/** On the disk where there is one, else in memory. */
const folders = { disk: '/var/system/uploads', memory: '/run/ichor/uploads' } as const
/** A release is a fraction of it. */
const largest = 2 ** 30

/** Whether a reference is that of an archive that was sent. */
export const isUpload = (reference: string): boolean => reference.startsWith(scheme)

/** Where the archive of a reference lies. Throws ReleaseError. */
export function findUpload({ files }: Doors, reference: string): { path: string; size: number } {
  const sum = reference.slice(scheme.length)
  if (!/^[0-9a-f]{64}$/.test(sum)) throw new ReleaseError(`"${reference.slice(0, 100)}" is not the name of an archive that was sent`)
  for (const folder of Object.values(folders)) {
    const path = `${folder}/${sum}.tar`
    const stats = files.lstatIfThere(path)
    if (stats) return { path, size: stats.size }
  }
  throw new ReleaseError(`the archive "${reference}" is not here: send it again`)
}

/** Takes an archive in, piece by piece; what was sent before goes. Gives its reference. */
export async function takeUpload({ files }: Doors, chunks: AsyncIterable<Uint8Array>, onDisk: boolean): Promise<string> {
  const folder = onDisk ? folders.disk : folders.memory
  files.mkdirAll(folder, { mode: 0o700 })
  for (const name of files.list(folder)) files.removeFile(`${folder}/${name}`)
  const draft = `${folder}/.${Bun.randomUUIDv7()}`
  const output = files.openWrite(draft, { mode: 0o600 })
  const hash = new Bun.CryptoHasher('sha256')
  let size = 0
  const { promise: broken, reject } = Promise.withResolvers<never>()
  output.on('error', reject)
  broken.catch(() => {})
  try {
    for await (const chunk of chunks) {
      size += chunk.length
      if (size > largest) throw new ReleaseError(`the archive is larger than ${largest >> 20} MiB`)
      hash.update(chunk)
      if (!output.write(chunk)) await Promise.race([broken, new Promise((resolve) => output.once('drain', resolve))])
    }
    await Promise.race([broken, new Promise<void>((resolve) => output.end(() => resolve()))])
  } catch (error) {
    output.destroy()
    if (files.exists(draft)) files.removeFile(draft)
    if ((error as { code?: string }).code === 'ENOSPC') throw new ReleaseError('there is no room for the archive on this node')
    throw error
  }
  const sum = hash.digest('hex')
  files.move(draft, `${folder}/${sum}.tar`)
  return scheme + sum
}
