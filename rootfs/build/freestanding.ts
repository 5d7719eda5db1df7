/** The programs in C that need no C library: pause, the first process of every pod, and guestinfo. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cached, cached, hashOf } from './cache.ts'
import { run } from './run.ts'
import { type Target, targets } from './target.ts'

/** Their names, each with flags of its own. */
const programs = {
  // It has no data, so that one segment does.
  pause: ['-Wl,-z,noseparate-code,-n'],
  guestinfo: [],
} as const

const flagsOf = (name: FreestandingProgram, { cFlags }: Target) => [
  ...['-Os', '-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector', '-fno-asynchronous-unwind-tables', ...cFlags],
  ...['-Wall', '-Wextra', '-Werror', '-fno-ident', '-Wl,--build-id=none,-s', ...programs[name]],
]

/** The name of a program, its folder below rootfs/ and its source. */
export type FreestandingProgram = keyof typeof programs

/** The source of a program, below the repository. */
export const sourceOf = (name: FreestandingProgram): string => `rootfs/${name}/${name}.c`

const pathOf = (name: FreestandingProgram) => join(import.meta.dir, '../..', sourceOf(name))

/** Whether a program of the root file system is one of them. */
export const isFreestanding = (name: string): name is FreestandingProgram => name in programs

/** The SHA-256 of the source of a program. */
export const sourceHash = (name: FreestandingProgram): string => hashOf(readFileSync(pathOf(name)))

/** Compiles a program; in the folder it has its name. */
export async function buildFreestanding(name: FreestandingProgram, target: Target = targets.amd64): Promise<Cached> {
  const flags = flagsOf(name, target)
  const compiler = (await run([target.gcc, '--version'])).split('\n')[0]
  return cached(name, { source: sourceHash(name), flags, compiler }, async (folder) => {
    await run([target.gcc, ...flags, '-o', join(folder, name), pathOf(name)])
  })
}
