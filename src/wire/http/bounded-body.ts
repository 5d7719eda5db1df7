/** The body of a response is larger than its reader accepts. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge'
  constructor(readonly limit: number) {
    super(`larger than ${limit} bytes`)
  }
}

/** The whole body of a response, of at most so many bytes; stops reading and throws BodyTooLarge beyond. */
export async function boundedBody({ body }: { readonly body: Response['body'] }, limit: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let size = 0
  const reader = body?.getReader()
  try {
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      size += next.value.length
      if (size > limit) throw new BodyTooLarge(limit)
      pieces.push(next.value)
    }
  } finally {
    await reader?.cancel().catch(() => {}) // the connection may be gone
  }
  return Buffer.concat(pieces)
}
