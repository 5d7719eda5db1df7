import { expect, test } from 'bun:test'
import { openProcess } from '../../../src/linux/process/process.ts'

test('a process stays identified until it is closed, and its memory is released once it was killed', async () => {
  const child = Bun.spawn(['sleep', '600'], { stdout: 'ignore' })
  const open = openProcess(child.pid)
  // A living process keeps its memory.
  open?.releaseMemory()
  expect(child.exitCode).toBeNull()
  child.kill('SIGKILL')
  open?.releaseMemory()
  await child.exited
  open?.releaseMemory()
  open?.close()
  expect([open !== undefined, child.signalCode, openProcess(child.pid)]).toEqual([true, 'SIGKILL', undefined])
})
