/**
 * GRUB's environment block: a file of 1024 bytes, a first line that names it, `name=value` lines and `#` to the end. GRUB
 * writes it in place while it starts. Everything of ours stands in its first 512 bytes, one sector, which a disk writes
 * whole or not at all.
 */

/** Bytes of the block. */
export const environmentSize = 1024

const title = '# GRUB Environment Block\n'
const oneSector = 512

/** The variables of a block by name; nothing when it is not one. */
export function parseEnvironment(bytes: Uint8Array): Map<string, string> | undefined {
  const text = Buffer.from(bytes).toString('latin1')
  if (bytes.length !== environmentSize || !text.startsWith(title)) return undefined
  const found = new Map<string, string>()
  for (const line of text.slice(title.length).split('\n')) {
    if (line.startsWith('#')) continue
    const at = line.indexOf('=')
    // Backslash and newline are escaped by a backslash; no value of ours has either.
    if (at > 0) found.set(line.slice(0, at), line.slice(at + 1).replaceAll(/\\(.)/g, '$1'))
  }
  return found
}

/** A block with these variables. Throws RangeError when they do not fit one sector. */
export function formatEnvironment(variables: ReadonlyMap<string, string>): Uint8Array {
  const lines = [...variables].map(([name, value]) => {
    if (!/^[a-z_]+$/.test(name) || !/^[\w.-]*$/.test(value)) throw new RangeError(`GRUB variable "${name}" has a value that is not plain`)
    return `${name}=${value}\n`
  })
  const text = title + lines.join('')
  if (text.length > oneSector) throw new RangeError('GRUB variables do not fit one sector')
  return Buffer.from(text.padEnd(environmentSize, '#'), 'latin1')
}
