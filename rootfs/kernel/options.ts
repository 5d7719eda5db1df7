/** Options of a kernel, as in its `.config` and in the fragments that request them (Documentation/kbuild/kconfig.rst). */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A line of a fragment or a `.config` is malformed, or gives an option a second value. */
export class OptionsError extends Error {
  override name = 'OptionsError'
}

/** Names without `CONFIG_`, with their values; "n" for one that is off. */
export type Options = ReadonlyMap<string, string>

/** Reads options; throws OptionsError for what is none and for a name that has two values. */
export function optionsIn(text: string, file: string): Options {
  const options = new Map<string, string>()
  text.split('\n').forEach((line, at) => {
    const off = line.match(/^# CONFIG_(\w+) is not set$/)?.[1]
    if (!off && (!line || line.startsWith('#'))) return
    const [, name = off, value = 'n'] = line.match(/^CONFIG_(\w+)=(.+)$/) ?? []
    if (!name) throw new OptionsError(`${file}:${at + 1}: must be "CONFIG_NAME=value" or "# CONFIG_NAME is not set": ${line.slice(0, 80)}`)
    if (options.has(name)) throw new OptionsError(`${file}:${at + 1}: CONFIG_${name} is there twice`)
    options.set(name, value)
  })
  return options
}

const folder = join(import.meta.dir, 'options')

/** The fragments, in the order in which they are merged. */
export const fragments: readonly string[] = readdirSync(folder)
  .sort()
  .map((name) => join(folder, name))

/** Everything that the fragments request; throws OptionsError when two of them request the same option. */
export const requestedOptions = (): Options => optionsIn(fragments.map((path) => readFileSync(path, 'utf8')).join('\n'), folder)

/** What was requested and did not take effect, a line each. */
export function missed(requested: Options, got: Options): string[] {
  return [...requested].flatMap(([name, value]) => {
    const found = got.get(name) ?? 'n'
    return found === value ? [] : [`CONFIG_${name}: ${value} was requested, ${found} came out`]
  })
}
