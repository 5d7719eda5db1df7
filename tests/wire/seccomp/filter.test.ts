/**
 * The filter is run here as the kernel runs it, and must decide as the profile specifies. libseccomp, which runc compiles the same
 * profile with, judges the numbers where it is installed.
 */
import { dlopen } from 'bun:ffi'
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import type { FilterInstruction } from '../../../src/wire/packet/filter.ts'
import { seccompFilter } from '../../../src/wire/seccomp/filter.ts'
import { type SeccompProfile, seccompProfile } from '../../../src/wire/seccomp/profile.ts'
import { lastSystemCall, systemCallNumber, systemCallNumbers } from '../../../src/wire/seccomp/system-calls.ts'

const machines = [
  ['x64', 0xc000003e],
  ['arm64', 0xc00000b7],
] as const

/** The answer of a filter to a call: what the kernel's interpreter of the classic packet filter gives. */
function answer(filter: readonly FilterInstruction[], machine: number, number: number, args: readonly bigint[] = []): string {
  const data = Buffer.alloc(64) // struct seccomp_data
  data.writeUInt32LE(number >>> 0, 0)
  data.writeUInt32LE(machine, 4)
  args.forEach((value, index) => {
    data.writeBigUInt64LE(value, 16 + index * 8)
  })
  let accumulator = 0
  for (let at = 0; ; at++) {
    const [op, yes, no, k] = filter[at] ?? [0, 0, 0, 0]
    const jump = (holds: boolean) => {
      at += holds ? yes : no
    }
    if (op === 0x20) accumulator = data.readUInt32LE(k)
    else if (op === 0x54) accumulator = (accumulator & k) >>> 0
    else if (op === 0x15) jump(accumulator === k)
    else if (op === 0x25) jump(accumulator > k)
    else if (op === 0x35) jump(accumulator >= k)
    else if (op === 0x06) return k === 0x7fff0000 ? 'allowed' : k === 0x80000000 ? 'killed' : `errno ${k & 0xffff}`
    else throw new Error(`instruction ${at} is ${op}`)
  }
}

/** The answer of the profile itself. */
function wanted({ syscalls }: SeccompProfile, name: string | undefined, args: readonly bigint[] = []): string {
  const holds = ({ index, value, valueTwo = 0, op }: NonNullable<(typeof syscalls)[number]['args']>[number]) => {
    const given = args[index] ?? 0n
    if (op === 'SCMP_CMP_EQ') return given === BigInt(value)
    if (op === 'SCMP_CMP_LT') return given < BigInt(value)
    return (given & BigInt(value)) === BigInt(valueTwo)
  }
  const rules = name === undefined ? [] : syscalls.filter(({ names, args: all = [] }) => names.includes(name) && all.every(holds))
  if (rules.some(({ action }) => action === 'SCMP_ACT_ALLOW')) return 'allowed'
  return `errno ${rules[0]?.errnoRet ?? 1}`
}

const values = [0n, 1n, 2n, 8n, 16n, 37n, 38n, 39n, 40n, 41n, 0x20000n, 0x20008n, 0x10000000n, 0x40000000n, 0x7e020000n, 0xffffffffn]
const args = [...values, ...values.map((value) => value | (1n << 32n)), 0xffffffffffffffffn]

describe.each(machines)('on %s', (machine, audit) => {
  test.each([
    ['no capability', []],
    ['capabilities', ['CAP_SYS_PTRACE', 'CAP_SYS_TIME']],
    ['the administrator’s capability', ['CAP_SYS_ADMIN']],
  ])('a filter with %s answers as its profile does, for every call', (_, capabilities) => {
    const profile = seccompProfile(capabilities, machine)
    const filter = seccompFilter(profile, machine)
    const names = new Map([...systemCallNumbers(machine)].map(([name, number]) => [number, name]))
    for (let number = 0; number <= lastSystemCall; number++)
      for (const value of args) {
        const [got, want] = [answer(filter, audit, number, [value]), wanted(profile, names.get(number), [value])]
        if (got !== want) throw new Error(`${names.get(number)} (${number}) of ${value}: ${got}, not ${want}`)
      }
  })

  test('calls of newer kernels and of other architectures are refused', () => {
    const filter = seccompFilter(seccompProfile([], machine), machine)
    expect(answer(filter, audit, lastSystemCall + 1)).toBe('errno 38')
    // x32 calls have bit 30.
    expect(answer(filter, audit, 0x40000000 | systemCallNumber('getpid', machine))).toBe('errno 38')
    expect(answer(filter, audit, -1)).toBe('errno 38')
    expect(answer(filter, 0x40000003, 20)).toBe('killed') // i386
  })

  const library = ['/usr/lib/x86_64-linux-gnu/libseccomp.so.2', '/usr/lib/aarch64-linux-gnu/libseccomp.so.2'].find(existsSync)
  test.skipIf(!library)('libseccomp knows the calls by the same numbers', () => {
    const { symbols, close } = dlopen(library!, { seccomp_syscall_resolve_name_arch: { args: ['u32', 'ptr'], returns: 'i32' } })
    const unlike: string[] = []
    let compared = 0
    for (const [name, number] of systemCallNumbers(machine)) {
      const theirs = symbols.seccomp_syscall_resolve_name_arch(audit, Buffer.from(`${name}\0`))
      if (theirs === -1) continue // newer than the library
      compared++
      if (theirs !== number) unlike.push(`${name}: ${number}, not ${theirs}`)
    }
    close()
    expect(unlike).toEqual([])
    expect(compared).toBeGreaterThan(290)
  })
})

test('every name in a profile is a system call', () => {
  const known = new Set(machines.flatMap(([machine]) => [...systemCallNumbers(machine).keys()]))
  const named = seccompProfile(['CAP_BPF', 'CAP_SYS_ADMIN', 'CAP_SYS_BOOT', 'CAP_SYS_NICE', 'CAP_SYS_PTRACE', 'CAP_SYS_RAWIO'])
  expect(named.syscalls.flatMap(({ names }) => names).filter((name) => !known.has(name))).toEqual([])
})

test('an unknown architecture gets no filter', () => {
  expect(() => seccompFilter(seccompProfile([]), 'riscv64')).toThrow('"riscv64"')
  expect(() => systemCallNumber('fly')).toThrow('no system call "fly"')
})
