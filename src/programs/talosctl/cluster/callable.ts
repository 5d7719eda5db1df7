import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** How a program is typed here: by its name when that finds it, else by its path beside this one. */
export function callable(name: string, directory = dirname(process.execPath), here = process.cwd()): string {
  const path = join(directory, name)
  const found = Bun.which(name)
  if (found || !existsSync(path)) return name
  const short = relative(here, path)
  return short.startsWith('..') ? path : `./${short}`
}
