/** The value of a JSON text, in UTF-8 where it is bytes; undefined for what is none, which fits no schema. */
export function jsonOf(input: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof input === 'string' ? input : Buffer.from(input).toString())
  } catch {
    return undefined
  }
}
