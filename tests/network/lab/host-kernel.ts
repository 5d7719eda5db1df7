/** The kernel of this host for a program of a story, with WireGuard in user space where it has none; those programs end with ours. */
import { join } from 'node:path'
import type { Logger } from '../../../src/cosi/log.ts'
import * as wireguard from '../../../src/linux/net/wireguard.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { kernelOf } from '../../../src/programs/init/kernel.ts'
import { withUserWireguard } from '../../../src/programs/init/user-wireguard.ts'
import { type Child, type Spawn, spawn } from '../../../src/supervise/spawn.ts'

const main = join(import.meta.dir, '../../../src/main.ts')

/** The sockets of the links are in `folder`. */
export function hostKernel(folder: string, log: Logger): Kernel {
  const children: Child[] = []
  const spawnOurs: Spawn = ({ argv: [, ...args], ...command }) => {
    const child = spawn({ ...command, argv: [process.execPath, main, 'wireguard', ...args] })
    children.push(child)
    return child
  }
  process.on('SIGTERM', () => {
    for (const child of children) child.kill('SIGKILL')
    process.exit(0)
  })
  return withUserWireguard({ ...kernelOf('container'), wireguard }, spawnOurs, () => log, folder)
}
