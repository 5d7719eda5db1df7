import type { Spawn } from '../../supervise/spawn.ts'

/** Asks udevd for something. Throws with the last line it said. */
export async function udevadm(spawn: Spawn, question: readonly string[], signal: AbortSignal): Promise<void> {
  const child = spawn({ argv: ['/usr/bin/udevadm', ...question], env: { PATH: '/usr/bin:/usr/sbin' } })
  const stop = () => child.kill('SIGKILL')
  signal.addEventListener('abort', stop)
  const said = await Promise.all(child.output.map((stream) => new Response(stream).text()))
  const { code } = await child.exited
  signal.removeEventListener('abort', stop)
  if (code !== 0) throw new Error(`udevadm ${question[0]}: ${said.join('').trim().split('\n').at(-1) || 'it was killed'}`)
}
