/**
 * Compiles a system call profile to classic BPF, which the kernel runs on `struct seccomp_data` at every call
 * (Documentation/userspace-api/seccomp_filter.rst). The results are those of runc with the same profile: calls without a rule
 * fail with EPERM, calls of newer kernels with ENOSYS, and calls of another architecture kill the process.
 */
import { constants } from 'node:os'
import type { FilterInstruction } from '../packet/filter.ts'
import type { SeccompProfile } from './profile.ts'
import { lastSystemCall, type SystemCallMachine, systemCallNumbers } from './system-calls.ts'

type Rule = SeccompProfile['syscalls'][number]
type Comparison = NonNullable<Rule['args']>[number]

/** Offsets in `struct seccomp_data`; both architectures store the low half of an argument first. */
const offset = { number: 0, machine: 4, low: (argument: number) => 16 + argument * 8, high: (argument: number) => 20 + argument * 8 }

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64. */
const auditMachines: Readonly<Record<SystemCallMachine, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 }

const allow = 0x7fff0000 // SECCOMP_RET_ALLOW
const killProcess = 0x80000000 // SECCOMP_RET_KILL_PROCESS
const fail = (errno: number) => 0x00050000 | errno // SECCOMP_RET_ERRNO
const { EPERM, ENOSYS } = constants.errno

const load = (at: number): FilterInstruction => [0x20, 0, 0, at]
const and = (mask: number): FilterInstruction => [0x54, 0, 0, mask]
const answer = (value: number): FilterInstruction => [0x06, 0, 0, value]
/** Instructions to skip when the comparison matches and when it does not. */
const equal = (k: number, yes: number, no: number): FilterInstruction => [0x15, yes, no, k]
const above = (k: number, yes: number, no: number): FilterInstruction => [0x25, yes, no, k]
const atLeast = (k: number, yes: number, no: number): FilterInstruction => [0x35, yes, no, k]

/** Compiles a profile. Throws for an unknown architecture or comparison, and when a rule is too long for its jumps. */
export function seccompFilter(profile: SeccompProfile, machine: string = process.arch): FilterInstruction[] {
  const numbers = systemCallNumbers(machine)
  const rules = new Map<number, Rule[]>()
  for (const rule of profile.syscalls)
    for (const name of rule.names) {
      const number = numbers.get(name)
      // Not every architecture has every call.
      if (number !== undefined) rules.set(number, [...(rules.get(number) ?? []), rule])
    }
  const always = [...rules].filter(([, own]) => own.some(isUnconditional)).map(([number]) => number)
  const sometimes = [...rules].filter(([, own]) => !own.some(isUnconditional))
  return [
    load(offset.machine),
    equal(auditMachines[machine as SystemCallMachine], 1, 0),
    answer(killProcess),
    load(offset.number),
    ...ranges(always).flatMap(([first, last]) => [atLeast(first, 0, 2), above(last, 1, 0), answer(allow)]),
    ...sometimes.flatMap(([number, own]) => {
      const tried = [...own.flatMap(instructionsOf), answer(fail(EPERM))]
      return [equal(number, 0, checkedJump(tried.length)), ...tried]
    }),
    above(lastSystemCall, 0, 1),
    answer(fail(ENOSYS)),
    answer(fail(EPERM)),
  ]
}

const isUnconditional = ({ action, args = [] }: Rule) => action === 'SCMP_ACT_ALLOW' && args.length === 0

/** Consecutive numbers, as first and last. */
function ranges(numbers: readonly number[]): [first: number, last: number][] {
  const found: [number, number][] = []
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = found.at(-1)
    if (last && last[1] + 1 === number) last[1] = number
    else found.push([number, number])
  }
  return found
}

/** One rule: returns its action when all comparisons match, otherwise continues after it. */
function instructionsOf({ action, errnoRet = EPERM, args = [] }: Rule): FilterInstruction[] {
  const instructions = [answer(action === 'SCMP_ACT_ALLOW' ? allow : fail(errnoRet))]
  for (const comparison of args.toReversed()) instructions.unshift(...comparing(comparison, instructions.length))
  return instructions
}

/** Continues with the next instruction when an argument (all 64 bits) matches, otherwise skips `behind` instructions. */
function comparing({ index, value, valueTwo = 0, op }: Comparison, behind: number): FilterInstruction[] {
  const skip = checkedJump(behind)
  const [high, low] = [load(offset.high(index)), load(offset.low(index))]
  switch (op) {
    case 'SCMP_CMP_EQ':
      return [high, equal(0, 0, checkedJump(behind + 2)), low, equal(value, 0, skip)]
    case 'SCMP_CMP_LT':
      return [high, equal(0, 0, checkedJump(behind + 2)), low, atLeast(value, skip, 0)]
    case 'SCMP_CMP_MASKED_EQ':
      return [low, and(value), equal(valueTwo, 0, skip)]
  }
}

function checkedJump(length: number): number {
  if (length > 255) throw new Error(`a rule of ${length} instructions: at most 255`)
  return length
}
