/** Installer images that lie on this computer: an OCI layout, as archive or folder, sent to a node through its API. */
import { createReadStream, existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { writeTar } from '../../../wire/tar/write.ts'
import { fileMember } from '../archive/file-member.ts'
import type { Cluster } from '../cluster.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { humanSize } from '../output/units.ts'

/** Whether an image is named by a path of this computer rather than by a reference. */
export function isLocal(image: string): boolean {
  return /^[./~]/.test(image) || existsSync(image)
}

/** Sends a local image to a node, unless it has it, and gives the name it has there; a reference is given back as it is. */
export async function sendImage(io: Io, cluster: Cluster, node: string | undefined, image: string): Promise<string> {
  if (!isLocal(image)) return image
  if (!existsSync(image)) throw new UsageError(`image "${image}" is not on this computer`)
  const folder = lstatSync(image).isDirectory()
  const parts = () => (folder ? folderAsTar(image) : createReadStream(image, { highWaterMark: 1 << 20 }))
  const hash = new Bun.CryptoHasher('sha256')
  for await (const part of parts()) hash.update(part as Uint8Array)
  const sha256 = hash.digest('hex')
  let sent = 0
  const progress = (text: string) => io.stderr.isTTY && io.stderr.write(`\r\u001b[K${text}`)
  const requests = async function* () {
    // By itself, so that a node which has the archive answers before much of it is on the way.
    yield { data: new Uint8Array(), sha256 }
    for await (const part of parts()) {
      const data = part as Uint8Array
      sent += data.length
      progress(`${node ?? 'node'}: sent ${humanSize(sent)}`)
      yield { data, sha256: '' }
    }
  }
  try {
    const { imageName } = await cluster.upload('ichor.v1.ReleaseService/Send', requests(), { node })
    return imageName
  } finally {
    progress('')
  }
}

/** The files of an OCI layout as the archive that nodes take. */
function folderAsTar(folder: string): AsyncGenerator<Uint8Array, void> {
  if (!existsSync(join(folder, 'index.json'))) throw new UsageError(`folder "${folder}" is no OCI layout: it has no "index.json"`)
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length).replace(/^\//, ''))
    .sort()
  return writeTar(names.values().map((name) => fileMember(name, join(folder, name))))
}
