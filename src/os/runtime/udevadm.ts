import type { Spawn } from '../../supervise/spawn.ts'

/** Runs udevadm. Throws its last line of output when it fails. */
export async function udevadm(spawn: Spawn, question: readonly string[], signal: AbortSignal): Promise<void> {
  const child = spawn({ argv: ['/usr/bin/udevadm', ...question], env: { PATH: '/usr/bin:/usr/sbin' } })
  const stop = () => child.kill('SIGKILL')
  signal.addEventListener('abort', stop)
  const outputs = await Promise.all(child.output.map((stream) => new Response(stream).text()))
  const { code } = await child.exited
  signal.removeEventListener('abort', stop)
  if (code !== 0) throw new Error(`udevadm ${question[0]}: ${outputs.join('').trim().split('\n').at(-1) || 'it was killed'}`)
}
