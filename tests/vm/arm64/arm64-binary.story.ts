/**
 * The binary for arm64 under emulation of the processor alone, with the kernel of this machine, and what src/linux takes from headers:
 * the C compilers of both processors are the judges.
 */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compileTalosctl } from '../../../rootfs/build/binary.ts'
import { run } from '../../../rootfs/build/run.ts'
import { systemCallNumbers } from '../../../src/wire/seccomp/system-calls.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-arm64-'))
afterAll(() => rmSync(folder, { recursive: true }))
const minutes = 60_000

/** Runs a program of arm64 with the C library of the cross compiler. */
const emulated = (file: string, ...args: string[]) => run(['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', file, ...args])

/** Compiles a C program that prints `name value` for each expression and runs it; names of system calls that its headers lack are left out. */
async function evaluated(expressions: Readonly<Record<string, string>>, arch: 'amd64' | 'arm64'): Promise<Map<string, number>> {
  const headers = ['errno', 'fcntl', 'netinet/in', 'poll', 'sched', 'signal', 'stdio', 'stddef', 'sys/ioctl', 'sys/mount', 'sys/prctl']
  const more = ['sys/resource', 'sys/socket', 'sys/stat', 'sys/syscall', 'sys/timex', 'sys/uio', 'sys/un', 'sys/utsname', 'sys/wait']
  const kernel = ['blkpg', 'dm-ioctl', 'fs', 'if_tun', 'loop', 'watchdog', 'sockios'].map((name) => `linux/${name}`)
  const source = [
    '#define _GNU_SOURCE',
    ...[...headers, ...more, ...kernel].map((name) => `#include <${name}.h>`),
    'int main(void) {',
    ...Object.entries(expressions).flatMap(([name, value]) => {
      const line = `printf("${name} %lld\\n", (long long)(${value}));`
      return value.startsWith('SYS_') ? [`#ifdef ${value}`, line, '#endif'] : [line]
    }),
    'return 0; }',
  ]
  const [file, program] = [join(folder, `${arch}.c`), join(folder, `values-${arch}`)]
  writeFileSync(file, `${source.join('\n')}\n`)
  await run([arch === 'amd64' ? 'gcc' : 'aarch64-linux-gnu-gcc', '-static', '-o', program, file])
  const text = arch === 'amd64' ? await run([program]) : await emulated(program)
  const rows = text.trim().split('\n')
  return new Map(rows.map((row) => row.split(' ')).map(([name = '', value]) => [name, Number(value)]))
}

test(
  'talosctl runs',
  async () => {
    expect(await emulated(await compileTalosctl('linux-arm64', folder), 'version', '--client')).toMatch(/OS\/Arch:\s+linux\/arm64/)
  },
  10 * minutes,
)

test(
  'every system call has the number of the headers',
  async () => {
    for (const [machine, arch] of [
      ['x64', 'amd64'],
      ['arm64', 'arm64'],
    ] as const) {
      const table = systemCallNumbers(machine)
      const there = await evaluated(Object.fromEntries([...table.keys()].map((name) => [name, `SYS_${name}`])), arch)
      // The headers of Debian 12 are older than the newest calls.
      expect(there.size).toBeGreaterThan(table.size - 25)
      expect([...there].filter(([name, number]) => table.get(name) !== number)).toEqual([])
    }
  },
  10 * minutes,
)

/** Flags that differ between the processors; src/ takes them from the runtime. */
const flags = ['O_DIRECTORY', 'O_NOFOLLOW', 'O_DIRECT']

/** What src/linux writes as numbers and offsets. */
const values: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...['O_NONBLOCK', 'O_CLOEXEC', 'O_ASYNC', 'O_PATH', 'F_SETFL', 'F_SETOWN', 'SO_PEERCRED', 'SO_RCVBUF', 'SOL_SOCKET'],
    ...['SOCK_CLOEXEC', 'SOCK_NONBLOCK', 'MSG_NOSIGNAL', 'MSG_DONTWAIT', 'WNOWAIT', 'WEXITED', 'MS_SHARED', 'MS_LAZYTIME', 'MNT_DETACH'],
    ...['BLKRRPART', 'BLKSSZGET', 'BLKPG', 'BLKDISCARD', 'BLKZEROOUT', 'BLKGETSIZE64', 'LOOP_CONFIGURE', 'LOOP_CTL_GET_FREE'],
    ...['TUNSETIFF', 'TUNSETPERSIST', 'TUNSETOFFLOAD', 'TUNSETVNETHDRSZ', 'SIOCGIFMTU', 'SIOCOUTQ', 'DM_VERSION', 'WDIOC_KEEPALIVE'],
    ...['WDIOC_SETTIMEOUT', 'FS_IOC_GETFLAGS', 'FS_IOC_SETFLAGS', 'RLIMIT_NPROC', 'RLIMIT_NOFILE', 'RLIMIT_MEMLOCK', 'RLIMIT_AS'],
    ...['SIGIO', 'SIGCHLD', 'SIG_SETMASK', 'POLLIN', 'POLLOUT', 'CLONE_NEWTIME', 'CLONE_NEWNET', 'EAGAIN', 'ELOOP', 'ENODATA'],
  ].map((name) => [name, name]),
)

/** Sizes and offsets of structures. */
const layouts: Readonly<Record<string, string>> = {
  'siginfo.pid': 'offsetof(siginfo_t, si_pid)',
  'siginfo.status': 'offsetof(siginfo_t, si_status)',
  'siginfo.code': 'offsetof(siginfo_t, si_code)',
  timex: 'sizeof(struct timex)',
  'timex.status': 'offsetof(struct timex, status)',
  'timex.constant': 'offsetof(struct timex, constant)',
  'timex.tai': 'offsetof(struct timex, tai)',
  mmsghdr: 'sizeof(struct mmsghdr)',
  'mmsghdr.length': 'offsetof(struct mmsghdr, msg_len)',
  'msghdr.control': 'offsetof(struct msghdr, msg_control)',
  cmsghdr: 'sizeof(struct cmsghdr)',
  utsname: 'sizeof(struct utsname)',
  dm_ioctl: 'sizeof(struct dm_ioctl)',
  loop_config: 'sizeof(struct loop_config)',
  pollfd: 'sizeof(struct pollfd)',
  sockaddr_in6: 'sizeof(struct sockaddr_in6)',
}

test(
  'numbers and layouts that are written down are those of both processors, and flags that differ come from the runtime',
  async () => {
    const expressions = { ...values, ...layouts, ...Object.fromEntries(flags.map((name) => [name, name])) }
    const [amd64, arm64] = [await evaluated(expressions, 'amd64'), await evaluated(expressions, 'arm64')]
    expect([...amd64.keys()].filter((name) => amd64.get(name) !== arm64.get(name))).toEqual(flags)
    expect([arm64.get('timex'), arm64.get('timex.tai'), arm64.get('siginfo.status'), arm64.get('mmsghdr')]).toEqual([208, 160, 24, 64])
    const script = join(folder, 'flags.ts')
    writeFileSync(script, `import { constants } from 'node:fs'\nconsole.log(JSON.stringify(constants))\n`)
    await run([process.execPath, 'build', '--compile', '--target=bun-linux-arm64', '--outfile', join(folder, 'flags'), script])
    const own = JSON.parse(await emulated(join(folder, 'flags'))) as Record<string, number>
    for (const name of flags) expect([name, own[name]]).toEqual([name, arm64.get(name)])
  },
  10 * minutes,
)
