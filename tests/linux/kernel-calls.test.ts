import { describe, expect, test } from 'bun:test'
import { hostname } from 'node:os'
import { capabilities, capabilitiesOfMask, capability } from '../../src/linux/capabilities.ts'
import { mount, mounts } from '../../src/linux/mount.ts'
import { namespaceOf } from '../../src/linux/namespaces.ts'
import { pidfdOpen, pidfdSendSignal } from '../../src/linux/pidfd.ts'
import { poll, pollEvents } from '../../src/linux/poll.ts'
import { children, exists, getpid, kill, reapOrphans, startTime } from '../../src/linux/process.ts'
import { getrlimit, isLimitedResource, setrlimit } from '../../src/linux/rlimit.ts'
import { sysctlPath } from '../../src/linux/sysctl.ts'
import { clockTicks, pageSize, sysinfo } from '../../src/linux/sysinfo.ts'
import { SystemError } from '../../src/linux/system-error.ts'
import { clock } from '../../src/linux/time.ts'
import { gethostname, uname } from '../../src/linux/uts.ts'
import { errnoName, failedWith } from '../../src/wire/errno.ts'

describe('failed calls', () => {
  test('name the call, what it was about and why', () => {
    const failure = () => mount({ source: 'a', target: '/none', type: 'tmpfs' })
    expect(failure).toThrow(SystemError)
    try {
      failure()
    } catch (error) {
      expect(error).toMatchObject({ call: 'mount' })
      expect(String(error)).toMatch(/^SystemError: mount "a" on "\/none": E[A-Z]+$/)
      expect(failedWith(error, 'ENOENT', 'EPERM')).toBe(true)
    }
  })

  test('have names also beyond the common ones', () => {
    expect(errnoName(2)).toBe('ENOENT')
    expect(errnoName(117)).toBe('EUCLEAN')
    expect(errnoName(9999)).toBe('E9999')
  })

  test('take no string with a NUL', () => {
    expect(() => mount({ source: 'a\0b', target: '/', type: 'tmpfs' })).toThrow('EINVAL (holds a NUL)')
  })
})

describe('this process', () => {
  test('is who it says', () => {
    expect(getpid()).toBe(process.pid)
    expect(gethostname()).toBe(hostname())
    expect(uname().sysname).toBe('Linux')
    expect(startTime('self')).toBe(startTime(process.pid) ?? -1)
    expect(namespaceOf('self', 'net')).toMatch(/^net:\[\d+\]$/)
    expect(mounts().some(({ target, type }) => target === '/proc' && type === 'proc')).toBe(true)
  })

  test('has limits that can be lowered', () => {
    const { soft, hard } = getrlimit('core')
    setrlimit('core', { soft: 0, hard })
    expect(getrlimit('core')).toEqual({ soft: 0, hard })
    setrlimit('core', { soft, hard })
    expect(isLimitedResource('nofile')).toBe(true)
    expect(isLimitedResource('toString')).toBe(false)
  })

  test('runs on a machine with memory, pages and a clock', () => {
    expect(sysinfo().totalMemory).toBeGreaterThan(1 << 20)
    expect(pageSize()).toBeGreaterThanOrEqual(4096)
    expect(clockTicks()).toBe(100)
    expect(clock('realtime')).toBeGreaterThan(1_500_000_000_000_000_000n)
    expect(clock('boottime')).toBeGreaterThan(0n)
  })
})

describe('children', () => {
  test('of the runtime are left to it, orphans are reaped', async () => {
    const own = Bun.spawn(['sh', '-c', 'exit 7'])
    expect(children()).toContain(own.pid)
    expect(reapOrphans((pid) => pid === own.pid).filter(({ pid }) => pid === own.pid)).toEqual([])
    expect(await own.exited).toBe(7)
    expect(startTime(own.pid)).toBeUndefined()
  })

  test('are signalled by number and by descriptor', async () => {
    const first = Bun.spawn(['sleep', '100'])
    expect(exists(first.pid)).toBe(true)
    kill(first.pid, 'SIGTERM')
    await first.exited
    expect(first.signalCode).toBe('SIGTERM')
    const second = Bun.spawn(['sleep', '100'])
    const fd = pidfdOpen(second.pid)
    expect(poll([{ fd, events: pollEvents.in }], 0)).toEqual([0])
    pidfdSendSignal(fd, 'SIGKILL')
    await second.exited
    expect(second.signalCode).toBe('SIGKILL')
    expect(poll([{ fd, events: pollEvents.in }], 0)).not.toEqual([0])
    expect(() => kill(second.pid, 'SIGNONE' as NodeJS.Signals)).toThrow('EINVAL')
  })
})

test('capabilities are read in any spelling', () => {
  expect(capability('CAP_NET_ADMIN')).toBe('net_admin')
  expect(capability('fly')).toBeUndefined()
  expect(capabilitiesOfMask('0000000000000401')).toEqual(['chown', 'net_bind_service'])
  expect(capabilitiesOfMask('not hex')).toEqual([])
  expect(capabilities().effective.every((name) => capabilities().permitted.includes(name))).toBe(true)
})

test('a kernel parameter is found under dots and slashes', () => {
  expect(sysctlPath('net.ipv4.ip_forward')).toBe('/proc/sys/net/ipv4/ip_forward')
  expect(sysctlPath('net/ipv4/conf/eth0.5/forwarding')).toBe('/proc/sys/net/ipv4/conf/eth0.5/forwarding')
  expect(sysctlPath('net.ipv4.conf.eth0/5.forwarding')).toBe('/proc/sys/net/ipv4/conf/eth0.5/forwarding')
  expect(() => sysctlPath('../../etc/passwd')).toThrow('EINVAL')
})
