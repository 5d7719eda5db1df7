import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { runners } from './all.ts'

const root = join(import.meta.dir, '..')

/** Runs the runner; no test is started by these arguments. */
function all(...args: string[]): { code: number; out: string; err: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, 'tests/all.ts', ...args], { cwd: root })
  return { code: exitCode, out: stdout.toString(), err: stderr.toString() }
}

test('a release is tested by the test command and every runner of long stories', () => {
  expect([...runners().keys()]).toEqual(['ci', 'conformance', 'etcd', 'interop', 'rotation', 'upgrade', 'vm'])
  for (const path of runners().values()) expect([path, existsSync(join(root, path))]).toEqual([path, true])
})

test('the runners are listed, and chosen by name', () => {
  expect(all('--list', '--only', 'ci,vm')).toEqual({ code: 0, out: 'ci\ttests/run.ts\nvm\ttests/vm/all.ts\n', err: '' })
  const { code, err } = all('--only', 'vm,nothing')
  expect([code, err]).toEqual([64, '--only nothing: no such runner; there are ci, conformance, etcd, interop, rotation, upgrade, vm\n'])
})
