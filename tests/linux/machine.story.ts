import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { attachLoop } from '../../src/linux/block/loop.ts'
import { exists } from '../../src/linux/fs/files.ts'
import { bind, mount, mountAt, mounts, propagate, umountTree } from '../../src/linux/fs/mount.ts'
import { attach, createCgroup, foldersOf, limit, processesIn, removeCgroup, usage } from '../../src/linux/process/cgroup.ts'
import { readKernelLog, writeKernelLog } from '../../src/linux/system/kmsg.ts'
import { parseExecReports } from '../../src/wire/exec-report.ts'
import { parseProcessStatus } from '../../src/wire/proc/process.ts'
import { cgroupsOf, loopDevices } from './kernel-state.ts'

const root = join(import.meta.dir, '../..')
const ichor = [process.execPath, join(root, 'src/main.ts')]

let folder = ''
beforeEach(() => {
  folder = mkdtempSync('/run/ichor-story-')
})
afterEach(() => {
  umountTree(folder)
  rmSync(folder, { recursive: true, force: true })
})

describe('mounts', () => {
  test('are created, bind-mounted read-only, and unmounted innermost first', () => {
    const a = join(folder, 'a b')
    const b = join(folder, 'b')
    mkdirSync(a)
    mkdirSync(b)
    mount({ source: 'tmpfs', target: a, type: 'tmpfs', flags: ['nosuid', 'nodev'], data: 'size=1m,mode=0750' })
    propagate(a, 'private')
    writeFileSync(join(a, 'x'), 'x')
    bind(a, b, { flags: ['ro', 'nosuid', 'nodev'] })
    expect(mountAt(a)).toMatchObject({ type: 'tmpfs', target: a, propagation: [] })
    expect(mountAt(b)?.options).toContain('ro')
    expect(() => writeFileSync(join(b, 'y'), '')).toThrow('EROFS')
    mkdirSync(join(a, 'inner'))
    mount({ source: 'tmpfs', target: join(a, 'inner'), type: 'tmpfs' })
    expect(umountTree(folder)).toEqual([join(a, 'inner'), b, a])
    expect(mounts().filter(({ target }) => target.startsWith(folder))).toEqual([])
  })

  test('of a file use a loop device that detaches itself', async () => {
    const image = join(folder, 'image')
    writeFileSync(image, Buffer.alloc(1 << 20))
    const loop = attachLoop(image, { readOnly: true, autoclear: true })
    expect(loopDevices().find(({ device }) => device === loop.device)).toMatchObject({
      backingFile: image,
      autoclear: true,
    })
    loop.release()
    loop.release()
    while (loopDevices().some(({ backingFile }) => backingFile === image)) await Bun.sleep(5)
    expect(() => attachLoop(join(folder, 'none'))).toThrow('ENOENT')
  })
})

describe('a cgroup', () => {
  const path = `/ichor-story-${process.pid}`

  afterEach(() => removeCgroup(path))

  test('limits its processes and is removed with them', async () => {
    createCgroup(`${path}/inner`)
    createCgroup(`${path}/inner`)
    limit(path, { memoryMax: 64 << 20, pidsMax: 30, cpuMax: 1 })
    const child = Bun.spawn(['sleep', '1000'])
    attach(`${path}/inner`, child.pid)
    expect(processesIn(path)).toEqual([child.pid])
    expect(cgroupsOf(child.pid)).toContain(`${path}/inner`)
    expect(usage(`${path}/inner`).pids).toBe(1)
    await removeCgroup(path)
    await child.exited
    expect(child.signalCode).toBe('SIGKILL')
    expect(foldersOf(path).some(exists)).toBe(false)
  })

  test('refuses processes beyond its limit', async () => {
    createCgroup(path)
    // Room for the threads of exec itself, which are in the group until it becomes the shell.
    limit(path, { pidsMax: 50 })
    const forks = 'n=0; while [ $n -lt 60 ]; do sleep 1000 & n=$((n+1)); done'
    const shell = Bun.spawn([...ichor, 'exec', '--cgroup', path, '--', 'sh', '-c', forks], {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
    })
    await shell.exited
    // The processes that were started hold standard error open.
    await removeCgroup(path)
    expect(await new Response(shell.stderr).text()).toMatch(/fork/i)
  })
})

describe('exec', () => {
  const run = async (args: string[]) => {
    const child = Bun.spawn([...ichor, 'exec', '--status-fd', '3', ...args], { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] })
    const [reports, output, code] = await Promise.all([
      new Response(Bun.file(child.stdio[3] as number).stream()).text(),
      new Response(child.stdout).text(),
      child.exited,
    ])
    return { reports: parseExecReports(reports), output, code, pid: child.pid }
  }

  test('starts an unprivileged process without capabilities that keeps its pid', async () => {
    const args =
      '--uid 50 --gid 51 --groups 52 --caps-keep none --no-new-privs --rlimit nofile=100:200 --umask 027 --clear-env --env A=b -- /bin/cat /proc/self/status /proc/self/environ'
    const { output, code, pid, reports } = await run(args.split(' '))
    const status = parseProcessStatus(output)
    expect(code).toBe(0)
    expect(reports).toEqual([])
    expect(status.get('Pid')).toBe(String(pid))
    expect(status.get('Uid')).toBe('50 50 50 50')
    expect(status.get('Gid')).toBe('51 51 51 51')
    expect(status.get('Groups')).toBe('52')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'SigIgn', 'SigBlk'])
      expect(status.get(set)).toBe('0000000000000000')
    expect(status.get('NoNewPrivs')).toBe('1')
    expect(status.get('Umask')).toBe('0027')
    expect(output).toEndWith('A=b\0')
  })

  test('lets a user keep one capability', async () => {
    const { output } = await run(['--uid', '50', '--gid', '50', '--caps-keep', 'net_bind_service', '--', '/bin/cat', '/proc/self/status'])
    const status = parseProcessStatus(output)
    for (const set of ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) expect(status.get(set)).toBe('0000000000000400')
  })

  test('passes no other open file to its program', async () => {
    const { output } = await run(['--', '/bin/ls', '/proc/self/fd'])
    expect(output.trim().split('\n')).toEqual(['0', '1', '2', '3']) // 3 is the folder that is listed
  })

  test('reports on its status descriptor what failed, and why', async () => {
    expect(await run(['--', '/nope'])).toMatchObject({
      code: 127,
      reports: [{ kind: 'failed', message: 'execve "/nope": ENOENT', code: 127 }],
    })
    expect(await run(['--', '/etc/passwd'])).toMatchObject({ code: 126, reports: [{ kind: 'failed', code: 126 }] })
    expect(await run(['--netns', '/nope', '--', 'true'])).toMatchObject({ code: 125, reports: [{ kind: 'failed', code: 125 }] })
  })

  test('sets the requested OOM score, or reports the lowest that is allowed', async () => {
    const { output, reports } = await run(['--oom-score', '-500', '--', '/bin/cat', '/proc/self/oom_score_adj'])
    const [report] = reports
    expect(output.trim()).toBe(report?.kind === 'clamped' ? String(report.got) : '-500')
    expect((await run(['--oom-score', '500', '--', '/bin/cat', '/proc/self/oom_score_adj'])).output.trim()).toBe('500')
  })
})

test('a line written to the kernel log is read back', async () => {
  const line = `ichor story ${process.pid}`
  writeKernelLog(line)
  const records = await Array.fromAsync(readKernelLog())
  expect(records.find(({ message }) => message === line)).toMatchObject({ facility: 3, severity: 6 })
})

test.each([
  ['restart', 'SIGHUP'],
  ['powerOff', 'SIGINT'],
] as const)('in a pid namespace of its own, %s ends it with %s', async (command, signal) => {
  const script = `import { reboot } from '${root}/src/linux/system/reboot.ts'; reboot('${command}'); await Bun.sleep(10000)`
  const child = Bun.spawn(['unshare', '--pid', '--fork', '--mount-proc', process.execPath, '-e', script])
  await child.exited
  expect(child.signalCode).toBe(signal)
})
