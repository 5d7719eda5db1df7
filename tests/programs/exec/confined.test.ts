/** A real process behind the filter: the kernel shows what it may do. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { parseProcessStatus } from '../../../src/wire/proc/process.ts'

const root = join(import.meta.dir, '../../..')

/** Makes system calls by name with their arguments, and prints what came of each: a number, or errno's name. */
const calls = `
import { dlopen, read } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { systemCallNumber } from '${root}/src/wire/seccomp/system-calls.ts'
import { errnoName } from '${root}/src/wire/errno.ts'
const { symbols: c } = dlopen('libc.so.6', {
  syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' }, __errno_location: { args: [], returns: 'ptr' } })
const made = (name, ...args) => {
  const result = c.syscall(typeof name === 'number' ? name : systemCallNumber(name), ...[...args, 0, 0, 0, 0, 0].slice(0, 5))
  return Number(result) === -1 ? errnoName(read.i32(c.__errno_location(), 0)) : 'made'
}
const tried = JSON.parse(process.argv[1]).map(([name, ...args]) => made(name, ...args.map(BigInt)))
console.log(JSON.stringify({ status: readFileSync('/proc/self/status', 'utf8'), tried }))`

async function run(flags: string[], tried: [name: string | number, ...args: string[]][]) {
  const argv = [process.execPath, join(root, 'src/main.ts'), 'exec', ...flags, '--', process.execPath, '-e', calls, JSON.stringify(tried)]
  const child = Bun.spawn(argv, { stdout: 'pipe', stderr: 'pipe' })
  const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect(errors).toBe('')
  const report = JSON.parse(output) as { status: string; tried: string[] }
  return { status: parseProcessStatus(report.status), tried: report.tried }
}

const CLONE_NEWUSER = String(0x10000000)
const onLinux = process.platform === 'linux'
const asRoot = onLinux && process.getuid?.() === 0

test.skipIf(!onLinux)('a filtered process has no calls that reach beyond what a service does', async () => {
  const { status, tried } = await run(
    [...(asRoot ? ['--caps-keep', 'none'] : []), '--no-new-privs', '--seccomp'],
    [
      ['unshare', CLONE_NEWUSER],
      ['clone', CLONE_NEWUSER],
      ['clone3'],
      ['ptrace', '0'],
      ['init_module'],
      ['bpf'],
      ['mount'],
      ['keyctl'],
      ['socket', '38', '5'],
      // The kernel would take this for AF_ALG too.
      ['socket', String(0x1_0000_0026), '5'],
      ['socket', '40', '1'],
      ['socket', '2', '1'],
      ['personality', String(0xffffffff)],
      [1000],
    ],
  )
  expect(status.get('Seccomp')).toBe('2')
  expect(status.get('NoNewPrivs')).toBe('1')
  expect(status.get('CapPrm')).toMatch(/^0+$/)
  expect(tried).toEqual([
    ...['EPERM', 'EPERM', 'ENOSYS', 'EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM'],
    ...['EPERM', 'EPERM', 'EPERM', 'made', 'made', 'ENOSYS'],
  ])
})

test.skipIf(!asRoot)('a capability that is kept brings its calls', async () => {
  const tried: Parameters<typeof run>[1] = [['unshare', CLONE_NEWUSER], ['chroot']]
  expect((await run(['--caps-keep', 'sys_chroot', '--no-new-privs', '--seccomp'], tried)).tried).toEqual(['EPERM', 'EFAULT'])
  expect((await run(['--caps-keep', 'none', '--no-new-privs', '--seccomp'], tried)).tried).toEqual(['EPERM', 'EPERM'])
})

test.skipIf(!onLinux)('nothing is filtered by default', async () => {
  const { status, tried } = await run([], [['keyctl', '99999']])
  expect(status.get('Seccomp')).toBe('0')
  expect(tried).toEqual(['EOPNOTSUPP'])
})
