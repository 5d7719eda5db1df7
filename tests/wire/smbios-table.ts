/** One structure as firmware writes it. */
export function structure(type: number, body: readonly number[], strings: readonly string[]): Uint8Array {
  const text = strings.length === 0 ? '\0\0' : `${strings.map((each) => `${each}\0`).join('')}\0`
  return Buffer.concat([Buffer.from([type, body.length + 4, 0, 0]), Buffer.from(body), Buffer.from(text, 'latin1')])
}
