/** The kernel's command line: words separated by blanks, `name` or `name=value`, with double quotes around blanks. */

/** One parameter. */
export interface Parameter {
  readonly name: string
  /** Empty for a parameter without `=`. */
  readonly value: string
}

/** Parameters before the `--` that separates init's arguments (Documentation/admin-guide/kernel-parameters). */
export function parseCommandLine(text: string): Parameter[] {
  const parameters: Parameter[] = []
  for (const [word] of text.slice(0, 1 << 16).matchAll(/(?=\S)(?:"[^"]*"|[^\s"])*(?:"[^"]*)?/g)) {
    const plain = word.replaceAll('"', '')
    if (plain === '--') break
    const at = plain.indexOf('=')
    parameters.push(at < 0 ? { name: plain, value: '' } : { name: plain.slice(0, at), value: plain.slice(at + 1) })
  }
  return parameters
}

/** All values of a name, in order. */
export const parameterValues = (parameters: readonly Parameter[], name: string): string[] =>
  parameters.filter((parameter) => parameter.name === name).map(({ value }) => value)
