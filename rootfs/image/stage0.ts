/** stage 0, the first process of a machine. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cached, hashOf } from '../build/cache.ts'
import { run } from '../build/run.ts'
import { type Target, targets } from '../build/target.ts'

const flagsOf = ({ cFlags }: Target) => [
  ...['-Os', '-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector', '-fno-asynchronous-unwind-tables', ...cFlags],
  '-fno-tree-loop-distribute-patterns', // memset must not be made to call memset
  ...['-Wall', '-Wextra', '-Werror', '-fno-ident', '-Wl,--build-id=none,-z,noseparate-code,-z,noexecstack,-s'],
]

/** Compiles stage 0 without a C library; gives the file. */
export async function buildStage0(target: Target = targets.amd64): Promise<string> {
  const flags = flagsOf(target)
  const folder = join(import.meta.dir, '../stage0')
  const names = readdirSync(folder).sort()
  const sources = names.filter((name) => name.endsWith('.c'))
  const content = Object.fromEntries(names.map((name) => [name, hashOf(readFileSync(join(folder, name)))]))
  const compiler = (await run([target.gcc, '--version'])).split('\n')[0]
  const part = await cached('stage0', { content, flags, compiler }, async (into) => {
    await run([target.gcc, ...flags, '-o', join(into, 'stage0'), ...sources], { cwd: folder })
  })
  return join(part.folder, 'stage0')
}
