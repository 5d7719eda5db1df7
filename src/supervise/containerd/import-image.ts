/**
 * Images from archives (OCI layout or `docker save`, compressed or not): sent through a named stream no faster than
 * containerd says it has room, unpacked, and known by the name that the archive gives, else by their digest.
 */

import { packAny, unpackAny } from '../../rpc/client/any.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import type { containerd } from '../../rpc/messages.ts'
import { RpcError } from '../../rpc/status.ts'
import { architecture, snapshotter } from './images.ts'
import { openStream } from './stream.ts'

/** What containerd takes in one message. */
const pieceSize = 32 * 1024
const deadline = 30 * 60_000

/** Imports an archive and gives the name of its image. Throws RpcError. */
export async function importImage(channel: Channel, archive: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<string> {
  const names: string[] = []
  const room = new Room()
  const data = await openStream(channel, 'import', (message) => {
    const update = unpackAny<containerd.types.transfer.WindowUpdate>('containerd.types.transfer.WindowUpdate', message)
    if (update) room.add(update.update)
    return undefined
  })
  const told = await openStream(channel, 'progress', (message) => {
    const progress = unpackAny<containerd.types.transfer.Progress>('containerd.types.transfer.Progress', message)
    if (progress?.event === 'saved') names.push(progress.name)
    return undefined
  })
  const ended = new AbortController()
  try {
    const platform = { os: 'linux', architecture }
    const transfer = channel.unary(
      'containerd.services.transfer.v1.Transfer/Transfer',
      {
        source: packAny('containerd.types.transfer.ImageImportStream', { stream: data.id }),
        destination: packAny('containerd.types.transfer.ImageStore', {
          platforms: [platform],
          unpacks: [{ platform, snapshotter }],
          extraReferences: [{ name: 'import', isPrefix: true, allowOverwrite: true, addDigest: true, skipNamedDigest: true }],
        }),
        options: { progressStream: told.id },
      },
      { deadline, signal: AbortSignal.any([signal, ended.signal]) },
    )
    const sent = (async () => {
      for await (const chunk of archive) {
        for (let at = 0; at < chunk.length; ) {
          const size = Math.min(pieceSize, chunk.length - at, await room.some(ended.signal))
          if (ended.signal.aborted) return
          data.send(packAny('containerd.types.transfer.Data', { data: chunk.subarray(at, at + size) }))
          room.add(-size)
          at += size
        }
      }
      data.end()
    })()
    sent.catch(() => ended.abort())
    await transfer.catch(async (error) => {
      if (ended.signal.aborted && !signal.aborted) await sent
      throw refused(error)
    })
    const name = names[0]
    if (!name) throw new RpcError('InvalidArgument', `the archive holds no image for linux/${architecture}`)
    return name
  } finally {
    ended.abort()
    data.close()
    told.close()
  }
}

/** What is wrong with an archive is the caller's business. */
function refused(error: unknown): unknown {
  const { message, status } = error as RpcError
  if (status !== 'Unknown' && status !== 'InvalidArgument' && status !== 'NotFound') return error
  return new RpcError('InvalidArgument', `import the archive: ${message}`)
}

/** How many bytes the other side still takes. */
class Room {
  #bytes = 0
  #wake = () => {}

  add(bytes: number): void {
    this.#bytes += bytes
    this.#wake()
  }

  /** The room there is, as soon as there is some; also when it is over. */
  async some(signal: AbortSignal): Promise<number> {
    const wake = () => this.#wake()
    signal.addEventListener('abort', wake)
    while (this.#bytes <= 0 && !signal.aborted)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    signal.removeEventListener('abort', wake)
    return Math.max(this.#bytes, 1)
  }
}
