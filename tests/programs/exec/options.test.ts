import { describe, expect, test } from 'bun:test'
import { ExecUsageError, parseExecOptions } from '../../../src/programs/exec/options.ts'

describe('exec', () => {
  test('reads what a process should be', () => {
    const line =
      '--uid 50 --gid=51 --groups 1,2 --cgroup /system/apid --caps-keep CAP_NET_ADMIN,chown --caps-drop sys_boot --no-new-privs --seccomp --unshare mnt,ipc --hide /run --hide /dev --show /dev/null --hide-processes --read-only --oom-score -998 --nice 10 --rlimit nofile=1024:65536 --rlimit memlock=unlimited --env A=b=c --clear-env --cwd / --umask 027 --netns /run/n --setsid --parent-death-signal SIGTERM --status-fd 3 -- /bin/x --uid 1 --'
    expect(parseExecOptions(line.split(' '))).toEqual({
      command: ['/bin/x', '--uid', '1', '--'],
      uid: 50,
      gid: 51,
      groups: [1, 2],
      cgroups: ['/system/apid'],
      keep: ['net_admin', 'chown'],
      drop: ['sys_boot'],
      noNewPrivileges: true,
      filtersSystemCalls: true,
      unshare: ['mnt', 'ipc'],
      hide: ['/run', '/dev'],
      show: ['/dev/null'],
      hidesProcesses: true,
      readOnly: true,
      oomScore: -998,
      nice: 10,
      limits: [
        { resource: 'nofile', soft: 1024, hard: 65536 },
        { resource: 'memlock', soft: Number.POSITIVE_INFINITY, hard: Number.POSITIVE_INFINITY },
      ],
      env: { A: 'b=c' },
      clearEnv: true,
      cwd: '/',
      umask: 0o27,
      netns: '/run/n',
      newSession: true,
      parentDeathSignal: 'SIGTERM',
      statusFd: 3,
    })
  })

  test('keeps no capability for "none", and all without the option', () => {
    expect(parseExecOptions(['--caps-keep', 'none', '--', 'x']).keep).toEqual([])
    expect(parseExecOptions(['--', 'x']).keep).toBeUndefined()
  })

  test.each([
    [[], 'no program: give it after "--"'],
    [['--uid', '50'], 'no program: give it after "--"'],
    [['--uid'], '--uid: its value is missing'],
    [['--uid', '-1', '--', 'x'], '--uid "-1": give a number from 0 to 4294967294'],
    [['--oom-score', '-1001', '--', 'x'], '--oom-score "-1001": give a number from -1000 to 1000'],
    [['--caps-keep', 'fly', '--', 'x'], '--caps-keep "fly": there is no such capability'],
    [['--rlimit', 'hope=1', '--', 'x'], '--rlimit "hope=1": give it as nofile=1024:65536'],
    [['--rlimit', 'nofile=2:1', '--', 'x'], '--rlimit "nofile=2:1": the soft limit is above the hard one'],
    [['--env', 'A', '--', 'x'], '--env: give it as NAME=VALUE'],
    [['--umask', '9', '--', 'x'], '--umask "9": give it in octal, as 027'],
    [['--seccomp', '--', 'x'], '--seccomp: give --no-new-privs too'],
    [['--unshare', 'mnt,net', '--', 'x'], '--unshare "net": give some of mnt, ipc, cgroup'],
    [
      ['--read-only', '--unshare', 'ipc', '--', 'x'],
      "--hide, --hide-processes and --read-only would change everyone's mounts: give --unshare mnt too",
    ],
    [['--fly', '--', 'x'], 'unknown option "--fly": see exec --help'],
  ])('refuses %j', (args, message) => {
    expect(() => parseExecOptions(args)).toThrow(new ExecUsageError(message))
  })
})
