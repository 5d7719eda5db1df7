import http2, { type ServerHttp2Stream } from 'node:http2'

/** A caller that still sends is told to stop once it has its answer; call it before the answer is sent. */
export function stopSending(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return
  stream.once('finish', () => {
    if (!stream.readableEnded) stream.close(http2.constants.NGHTTP2_NO_ERROR)
  })
}
