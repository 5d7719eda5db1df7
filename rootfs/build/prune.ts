/** Keeps the cache from growing forever: what no build has used for two weeks goes. */
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache.ts'

const kept = 14 * 24 * 3600_000

/** Deletes parts, packages and blocks that were not used for two weeks. */
export function pruneCache(): void {
  const old = (path: string) => Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > kept
  const below = (folder: string) => (existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [])
  const blocks = below(join(cacheFolder, 'blocks')).flatMap(below).flatMap(below)
  for (const path of [...below(join(cacheFolder, 'parts')), ...below(join(cacheFolder, 'debian')), ...blocks]) {
    if (old(path)) rmSync(path, { recursive: true, force: true })
  }
}
