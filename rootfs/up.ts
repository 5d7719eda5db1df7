/**
 * `bun run up`: from a fresh clone to a running cluster. Whatever follows is handed to `talosctl cluster create`, which
 * also finds and reports a cluster that already runs.
 */
import { join } from 'node:path'
import { dist } from './build/binary.ts'
import { failed } from './build/failure.ts'
import { HostError } from './build/host.ts'
import { buildRootfs } from './build/rootfs.ts'

async function up(): Promise<number> {
  if (process.platform !== 'linux')
    throw new HostError(`this is ${process.platform}: nodes are Linux containers, so a Linux machine is needed`)
  if (process.getuid?.() !== 0) throw new HostError('nodes are made of namespaces, mounts and links: run this as root')
  await buildRootfs({ nodesOnly: true })
  const child = Bun.spawn([join(dist, 'talosctl'), 'cluster', 'create', ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  // The terminal signals the whole process group; other signals are passed on, and the exit of the child is awaited.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  return child.exited
}

try {
  process.exitCode = await up()
} catch (error) {
  failed(error)
}
