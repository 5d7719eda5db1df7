import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Io } from '../io.ts'

/** Where clusters are kept by default. */
export function stateDirectory(flag: string | undefined, env: Io['env']): string {
  const base = env.TALOS_HOME || join(env.HOME || homedir(), '.talos')
  if (!flag) return join(base, 'clusters')
  return resolve(flag.startsWith('~/') ? join(env.HOME || homedir(), flag.slice(2)) : flag)
}

/** Where the output of `mkimage.sh` is looked for by default: beside this binary. */
export function imagesFolder(flag: string | undefined): string {
  return flag ? resolve(flag) : besideThisProgram()
}

function besideThisProgram(): string {
  const compiled = Bun.main.startsWith('/$bunfs/')
  return compiled ? dirname(process.execPath) : new URL('../../../../dist', import.meta.url).pathname
}

/** The nodes' root file system: named by the flag or the environment, else beside this binary, packed for speed when it is there. */
export function imagePath(flag: string | undefined, env: Io['env']): string {
  if (flag || env.ICHOR_ROOTFS) return resolve(flag || env.ICHOR_ROOTFS || '')
  const directory = besideThisProgram()
  const packedForNodes = join(directory, 'rootfs.node.sqsh')
  return existsSync(packedForNodes) ? packedForNodes : join(directory, 'rootfs.sqsh')
}
