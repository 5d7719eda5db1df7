/**
 * GRUB's environment block: a file of 1024 bytes with a header line, `name=value` lines and padding of `#`. GRUB writes it in
 * place at boot. All variables are in its first 512 bytes, one sector, which a disk writes atomically.
 */

/** Size of the block in bytes. */
export const environmentSize = 1024

const title = '# GRUB Environment Block\n'
const oneSector = 512

/** Parses the variables of a block; undefined if it is not a block. */
export function parseEnvironment(bytes: Uint8Array): Map<string, string> | undefined {
  const text = Buffer.from(bytes).toString('latin1')
  if (bytes.length !== environmentSize || !text.startsWith(title)) return undefined
  const found = new Map<string, string>()
  for (const line of text.slice(title.length).split('\n')) {
    if (line.startsWith('#')) continue
    const at = line.indexOf('=')
    // Backslash escapes backslash and newline; our values contain neither.
    if (at > 0) found.set(line.slice(0, at), line.slice(at + 1).replaceAll(/\\(.)/g, '$1'))
  }
  return found
}

/** Formats a block. Throws RangeError if the variables exceed one sector. */
export function formatEnvironment(variables: ReadonlyMap<string, string>): Uint8Array {
  const lines = [...variables].map(([name, value]) => {
    if (!/^[a-z_]+$/.test(name) || !/^[\w.-]*$/.test(value)) throw new RangeError(`GRUB variable "${name}" has an invalid value`)
    return `${name}=${value}\n`
  })
  const text = title + lines.join('')
  if (text.length > oneSector) throw new RangeError('GRUB variables do not fit one sector')
  return Buffer.from(text.padEnd(environmentSize, '#'), 'latin1')
}
