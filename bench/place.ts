import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The folder in which benchmarks keep their program, their home and their clusters. */
export function benchFolder(): string {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor', 'bench')
  mkdirSync(folder, { recursive: true })
  return folder
}
