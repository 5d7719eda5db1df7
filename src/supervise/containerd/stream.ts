/** Named streams beside a call: containerd reports progress on one and requests credentials on another. */

import { packAny } from '../../rpc/client/any.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import type { google } from '../../rpc/messages.ts'

type Any = google.protobuf.Any

/** A stream that containerd refers to by its id. */
export interface NamedStream {
  readonly id: string
  send(message: Any): void
  /** Half-closes the stream; containerd may still send. */
  end(): void
  close(): void
}

/** Opens a stream and handles each message on it: what the handler returns is sent back. Resolves once containerd has registered the id. */
export async function openStream(channel: Channel, name: string, handle: (message: Any) => Any | undefined): Promise<NamedStream> {
  const id = `${name}-${crypto.randomUUID()}`
  const ready = Promise.withResolvers<void>()
  const abort = new AbortController()
  const outgoing = new Queue()
  outgoing.push(packAny('containerd.services.streaming.v1.StreamInit', { id }))
  const listen = async () => {
    let first = true
    for await (const message of channel.bidi('containerd.services.streaming.v1.Streaming/Stream', outgoing, { signal: abort.signal })) {
      if (first) ready.resolve()
      else {
        const answer = handle(message)
        if (answer) outgoing.push(answer)
      }
      first = false
    }
  }
  listen().catch((error) => ready.reject(error))
  await ready.promise
  return {
    id,
    send: (message) => outgoing.push(message),
    end: () => outgoing.end(),
    close: () => {
      outgoing.end()
      abort.abort()
    },
  }
}

/** Outgoing messages in order, until ended. */
class Queue implements AsyncIterable<Any> {
  readonly #items: Any[] = []
  #ended = false
  #wake = () => {}

  push(item: Any): void {
    this.#items.push(item)
    this.#wake()
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Any> {
    for (;;) {
      const item = this.#items.shift()
      if (item) yield item
      else if (this.#ended) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}
