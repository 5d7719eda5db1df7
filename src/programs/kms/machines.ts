/**
 * The machines that a KMS serves: a text of one UUID a line, in any case, with comments from "#" to the end of the line. What
 * stands for a UUID in META (up to 128 printable letters without spaces) is one too.
 */

/** Most bytes of the text: some 100,000 machines. */
export const longestMachines = 4 << 20

/** Letters of a UUID, or of what an operator wrote to META in its place. */
export const longestId = 128

/** The id of a machine as it is compared and authenticated; undefined for a text that is none. */
export const machineId = (text: string): string | undefined =>
  text.length <= longestId && /^[\x21-\x7e]+$/.test(text) ? text.toLowerCase() : undefined

/** A list of machines that cannot be used. The message has the line. */
export class MachinesError extends Error {
  override name = 'MachinesError'
}

/** Parses the list. Throws MachinesError. */
export function parseMachines(text: string): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [index, line] of text.split('\n').entries()) {
    const [bare = ''] = line.split('#', 1)
    const trimmed = bare.trim()
    if (trimmed === '') continue
    const id = machineId(trimmed)
    if (id === undefined) throw new MachinesError(`line ${index + 1} is no UUID of a machine (1 to ${longestId} letters without spaces)`)
    found.add(id)
  }
  return found
}
