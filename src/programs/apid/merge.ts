/**
 * Replies of several nodes made into one without decoding them. A unary reply is a list of messages in field 1, so
 * concatenated replies are one reply with them all; who answered is appended to each message as its own field 1,
 * `common.Metadata`, and the message's length is rewritten. A streamed reply has the metadata as its field 1 itself.
 */
import { describeRpcError, type RpcError } from '../../rpc/status.ts'
import { ProtoError, Reader, Writer, wireType } from '../../rpc/wire.ts'

/** A unary reply with its messages marked as one node's. Throws ProtoError when it is no list of messages. */
export function markReply(reply: Uint8Array, node: string): Buffer {
  const mark = metadata(node)
  const writer = new Writer(0, reply.length + mark.length + 16)
  const reader = new Reader(reply)
  if (reader.done) element(writer, reply, mark)
  while (!reader.done) {
    const start = reader.offset
    const { field, type } = reader.tag()
    if (field === 1 && type !== wireType.bytes) throw new ProtoError('reply is not a list of messages', start)
    if (field === 1) element(writer, reader.bytes(), mark)
    else {
      reader.skip(type)
      writer.raw(reply.subarray(start, reader.offset))
    }
  }
  return writer.finish()
}

/** A unary reply with the reason why a node did not answer. */
export function failedReply(node: string, error: RpcError): Buffer {
  const writer = new Writer()
  element(writer, new Uint8Array(), metadata(node, error))
  return writer.finish()
}

/** A streamed message marked as one node's. */
export function markMessage(message: Uint8Array, node: string, reserved = 0): Buffer {
  const mark = metadata(node)
  const writer = new Writer(reserved, reserved + message.length + mark.length + 16)
  writer.raw(message)
  writer.raw(mark)
  return writer.finish()
}

/** A streamed message with the reason why a node's stream ended. */
export function failedMessage(node: string, error: RpcError, reserved = 0): Buffer {
  const writer = new Writer(reserved)
  writer.raw(metadata(node, error))
  return writer.finish()
}

function element(writer: Writer, message: Uint8Array, mark: Uint8Array): void {
  writer.tag(1, wireType.bytes)
  writer.varint(message.length + mark.length)
  writer.raw(message)
  writer.raw(mark)
}

/** Field 1, common.Metadata: hostname, and for a failure its text and google.rpc.Status. */
function metadata(node: string, error?: RpcError): Buffer {
  const writer = new Writer()
  writer.tag(1, wireType.bytes)
  writer.delimited(() => {
    writer.tag(1, wireType.bytes)
    writer.string(node)
    if (!error) return
    writer.tag(2, wireType.bytes)
    writer.string(describeRpcError(error))
    writer.tag(3, wireType.bytes)
    writer.delimited(() => {
      writer.tag(1, wireType.varint)
      writer.varint(error.code)
      writer.tag(2, wireType.bytes)
      writer.string(error.message)
    })
  })
  return writer.finish()
}
