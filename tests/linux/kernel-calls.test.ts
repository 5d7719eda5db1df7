import { describe, expect, test } from 'bun:test'
import { hostname } from 'node:os'
import { mount, mounts } from '../../src/linux/fs/mount.ts'
import { capabilities, capability } from '../../src/linux/process/capabilities.ts'
import { children, exists, getpid, kill, reapOrphans, startTime } from '../../src/linux/process/process.ts'
import { getrlimit, isLimitedResource, setrlimit } from '../../src/linux/process/rlimit.ts'
import { sysctlPath } from '../../src/linux/system/sysctl.ts'
import { clock } from '../../src/linux/system/time.ts'
import { gethostname, uname } from '../../src/linux/system/uts.ts'
import { SystemError } from '../../src/linux/system-error.ts'
import { errnoName, failedWith } from '../../src/wire/errno.ts'

describe('failed calls', () => {
  test('name the call, its subject and the reason', () => {
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

  test('have names for uncommon errors too', () => {
    expect(errnoName(2)).toBe('ENOENT')
    expect(errnoName(117)).toBe('EUCLEAN')
    expect(errnoName(9999)).toBe('E9999')
  })

  test('take no string with a NUL', () => {
    expect(() => mount({ source: 'a\0b', target: '/', type: 'tmpfs' })).toThrow('EINVAL (holds a NUL)')
  })
})

describe('this process', () => {
  test('has the expected identity', () => {
    expect(getpid()).toBe(process.pid)
    expect(gethostname()).toBe(hostname())
    expect(uname().sysname).toBe('Linux')
    expect(startTime('self')).toBe(startTime(process.pid) ?? -1)
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

  test('reads the clocks of the kernel', () => {
    expect(clock('realtime')).toBeGreaterThan(1_500_000_000_000_000_000n)
    expect(clock('boottime')).toBeGreaterThan(0n)
  })
})

describe('children', () => {
  test('of the runtime are left to the runtime, orphans are reaped', async () => {
    const own = Bun.spawn(['sh', '-c', 'exit 7'])
    expect(children()).toContain(own.pid)
    expect(reapOrphans((pid) => pid === own.pid).filter(({ pid }) => pid === own.pid)).toEqual([])
    expect(await own.exited).toBe(7)
    expect(startTime(own.pid)).toBeUndefined()
  })

  test('accept signals by name, and an unknown signal is refused', async () => {
    const child = Bun.spawn(['sleep', '100'])
    expect(exists(child.pid)).toBe(true)
    kill(child.pid, 'SIGTERM')
    await child.exited
    expect(child.signalCode).toBe('SIGTERM')
    expect(() => kill(child.pid, 'SIGNONE' as NodeJS.Signals)).toThrow('EINVAL')
  })
})

test('capabilities are parsed in any spelling', () => {
  expect(capability('CAP_NET_ADMIN')).toBe('net_admin')
  expect(capability('fly')).toBeUndefined()
  expect(capabilities().effective.every((name) => capabilities().permitted.includes(name))).toBe(true)
})

test('a kernel parameter is found under dots and slashes', () => {
  expect(sysctlPath('net.ipv4.ip_forward')).toBe('/proc/sys/net/ipv4/ip_forward')
  expect(sysctlPath('net/ipv4/conf/eth0.5/forwarding')).toBe('/proc/sys/net/ipv4/conf/eth0.5/forwarding')
  expect(sysctlPath('net.ipv4.conf.eth0/5.forwarding')).toBe('/proc/sys/net/ipv4/conf/eth0.5/forwarding')
  expect(() => sysctlPath('../../etc/passwd')).toThrow('EINVAL')
})
