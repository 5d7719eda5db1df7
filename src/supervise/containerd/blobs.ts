/** Small documents in containerd's content store: manifests and image configurations. */

import type { Channel } from '../../rpc/client/channel.ts'
import { containerd } from '../../rpc/enums.ts'

const limit = 8 << 20

/** Reads a blob as JSON. Refuses blobs over 8 MiB. */
export async function readJson<T>(channel: Channel, digest: string): Promise<T> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const { data } of channel.serverStream('containerd.services.content.v1.Content/Read', { digest }, { deadline: 30_000 })) {
    size += data.length
    if (size > limit) throw new Error(`read blob "${digest}": larger than ${limit} bytes`)
    parts.push(data)
  }
  return JSON.parse(Buffer.concat(parts).toString()) as T
}

/** Stores a small blob under its digest, with labels. Does nothing when it exists. */
export async function writeBlob(channel: Channel, digest: string, bytes: Uint8Array, labels: Record<string, string>): Promise<void> {
  const { COMMIT } = containerd.services.content.v1.WriteAction
  const ref = `ichor-${digest}`
  const requests = [{ action: COMMIT, ref, total: bytes.length, expected: digest, offset: 0, data: bytes, labels }]
  try {
    for await (const _ of channel.bidi('containerd.services.content.v1.Content/Write', requests, { deadline: 30_000 })) {
      // The commit gets one response.
    }
  } catch (error) {
    if ((error as { status?: string }).status !== 'AlreadyExists') throw error
  }
}
