/** The position of a value inside a document: keys of maps and indexes of lists. */
export type Path = readonly (string | number)[]

/** `machine.network.interfaces[0]`; keys that would be ambiguous are quoted: `machine.nodeLabels["a.b/c"]`. */
export function formatPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (/^[\w-]+$/.test(step)) text += text ? `.${step}` : step
    else text += `[${JSON.stringify(step)}]`
  }
  return text
}
