/** pause, the first process of every pod. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cached, cached, hashOf } from './cache.ts'
import { run } from './run.ts'
import { type Target, targets } from './target.ts'

const flagsOf = ({ cFlags }: Target) => [
  ...['-Os', '-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector', '-fno-asynchronous-unwind-tables', ...cFlags],
  ...['-Wall', '-Wextra', '-Werror', '-fno-ident', '-Wl,--build-id=none,-z,noseparate-code,-n,-s'],
]

export const pauseSource: string = join(import.meta.dir, '../pause/pause.c')

/** Compiles pause without a C library. */
export async function buildPause(target: Target = targets.amd64): Promise<Cached> {
  const flags = flagsOf(target)
  const compiler = (await run([target.gcc, '--version'])).split('\n')[0]
  return cached('pause', { source: hashOf(readFileSync(pauseSource)), flags, compiler }, async (folder) => {
    await run([target.gcc, ...flags, '-o', join(folder, 'pause'), pauseSource])
  })
}
