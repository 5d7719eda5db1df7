/**
 * Imports images from archives (OCI layout or `docker save`, compressed or not). The archive is sent through a named
 * stream within the flow control window of containerd and is unpacked. The image gets the name in the archive, else its
 * digest.
 */

import { packAny, unpackAny } from '../../rpc/client/any.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import type { containerd } from '../../rpc/messages.ts'
import { RpcError } from '../../rpc/status.ts'
import { architecture, snapshotter } from './images.ts'
import { openStream } from './stream.ts'

/** Maximum bytes of one data message. */
const pieceSize = 32 * 1024
const deadline = 30 * 60_000

/** Imports an archive and returns the name of its image. Throws RpcError. */
export async function importImage(channel: Channel, archive: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<string> {
  const names: string[] = []
  const window = new Window()
  const data = await openStream(channel, 'import', (message) => {
    const update = unpackAny<containerd.types.transfer.WindowUpdate>('containerd.types.transfer.WindowUpdate', message)
    if (update) window.add(update.update)
    return undefined
  })
  const progressStream = await openStream(channel, 'progress', (message) => {
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
        options: { progressStream: progressStream.id },
      },
      { deadline, signal: AbortSignal.any([signal, ended.signal]) },
    )
    const sent = (async () => {
      for await (const chunk of archive) {
        for (let at = 0; at < chunk.length; ) {
          const size = Math.min(pieceSize, chunk.length - at, await window.some(ended.signal))
          if (ended.signal.aborted) return
          data.send(packAny('containerd.types.transfer.Data', { data: chunk.subarray(at, at + size) }))
          window.add(-size)
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
    progressStream.close()
  }
}

/** Maps failures caused by the archive itself to InvalidArgument. */
function refused(error: unknown): unknown {
  const { message, status } = error as RpcError
  if (status !== 'Unknown' && status !== 'InvalidArgument' && status !== 'NotFound') return error
  return new RpcError('InvalidArgument', `import the archive: ${message}`)
}

/** The flow control window: how many bytes containerd still accepts. */
class Window {
  #bytes = 0
  #wake = () => {}

  add(bytes: number): void {
    this.#bytes += bytes
    this.#wake()
  }

  /** Waits for a non-empty window and returns its size; returns at once when the signal is aborted. */
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
