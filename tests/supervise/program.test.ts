import { expect, test } from 'bun:test'
import { Store } from '../../src/cosi/store.ts'
import { program } from '../../src/supervise/runner/program.ts'
import type { Child, Command } from '../../src/supervise/spawn.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'

test('a program is started through exec with its identity, group and score, and its exit is reported', async () => {
  let command: Command | undefined
  let end = (_: Awaited<Child['exited']>) => {}
  const supervisor = new Supervisor({ store: new Store() })
  const runner = program({ argv: ['/usr/bin/containerd', '--root', '/x'], env: { PATH: '/usr/bin' }, uid: 7 }, (given) => {
    command = given
    const exited = new Promise<Awaited<Child['exited']>>((resolve) => {
      end = resolve
    })
    return { pid: 42, output: [new Blob(['up\n']).stream(), new Blob([]).stream()], exited, kill: () => {} }
  })
  supervisor.load({ id: 'cri', dependsOn: [], restart: 'never', oom: -500, cgroup: '/podruntime/runtime', runner })
  supervisor.start('cri')
  await supervisor.until('cri', 'up')
  expect(command?.argv.join(' ')).toBe(
    '/usr/bin/exec --uid 7 --gid 7 --cgroup /podruntime/runtime --oom-score -500 -- /usr/bin/containerd --root /x',
  )
  end({ code: 2, signal: null })
  await supervisor.until('cri', 'down')
  expect(supervisor.get('cri')?.events.at(-1)).toMatchObject({ state: 'Failed', message: 'Process "cri" exited with code 2' })
  expect(supervisor.logs.get('cri')?.toString()).toBe('up\n')
})

test('a confined program gets no capability, few system calls and a view of its own', async () => {
  let command: Command | undefined
  const supervisor = new Supervisor({ store: new Store() })
  const runner = program({ argv: ['/bin/x'], uid: 7, confined: true, view: { hide: ['/run', '/dev'], show: ['/dev/null'] } }, (given) => {
    command = given
    return { pid: 42, output: [], exited: new Promise(() => {}), kill: () => {} }
  })
  supervisor.load({ id: 'x', dependsOn: [], restart: 'never', runner })
  supervisor.start('x')
  await supervisor.until('x', 'up')
  expect(command?.argv.join(' ')).toBe(
    '/usr/bin/exec --uid 7 --gid 7 --caps-keep none --no-new-privs --seccomp --unshare mnt,ipc,cgroup --hide-processes --read-only ' +
      '--hide /run --hide /dev --show /dev/null -- /bin/x',
  )
})

test('a program that cannot be executed fails the run with the reason', async () => {
  const supervisor = new Supervisor({ store: new Store() })
  const runner = program({ argv: ['/nonexistent/program'] })
  supervisor.load({ id: 'x', dependsOn: [], restart: 'never', runner })
  supervisor.start('x')
  await supervisor.until('x', 'down')
  expect(supervisor.get('x')?.events.at(-1)?.message).toContain('/nonexistent/program')
})
