/** stage 0, the first process of a machine. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cached, hashOf } from '../build/cache.ts'
import { run } from '../build/run.ts'

const flags = [
  ...['-Os', '-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector', '-fno-asynchronous-unwind-tables', '-fcf-protection=none'],
  ...['-Wall', '-Wextra', '-Werror', '-fno-ident', '-Wl,--build-id=none,-z,noseparate-code,-z,noexecstack,-s'],
]

/** Compiles stage 0 without a C library; gives the file. */
export async function buildStage0(): Promise<string> {
  const source = join(import.meta.dir, '../stage0/stage0.c')
  const compiler = (await run(['gcc', '--version'])).split('\n')[0]
  const part = await cached('stage0', { source: hashOf(readFileSync(source)), flags, compiler }, async (folder) => {
    await run(['gcc', ...flags, '-o', join(folder, 'stage0'), source])
  })
  return join(part.folder, 'stage0')
}
