import { describe, expect, test } from 'bun:test'
import {
  classFigures,
  oomClasses,
  oomExpressionProblem,
  oomRanking,
  oomTrigger,
  pressureFigures,
  type RankingValues,
  type TriggerValues,
} from '../../../../src/os/runtime/documents/oom-expression.ts'

const { Besteffort, Burstable, Guaranteed, Podruntime, System } = oomClasses
const nothing = new Map<number, number>(Object.values(oomClasses).map((number) => [number, 0]))

/** A machine at rest, with some variables of another value. */
function variables(changed: TriggerValues = {}): TriggerValues {
  const names = pressureFigures.flatMap((name) => [name, `d_${name}`])
  const vectors = classFigures.flatMap((name) => [`qos_${name}`, `d_qos_${name}`])
  return {
    ...Object.fromEntries(names.map((name) => [name, 0])),
    ...Object.fromEntries(vectors.map((name) => [name, nothing])),
    time_since_trigger: 60_000,
    ...changed,
  }
}

const of = (group: Partial<RankingValues> & Pick<RankingValues, 'class'>): RankingValues => ({
  memory_max: undefined,
  memory_current: 1000,
  memory_peak: 2000,
  path: '/sys/fs/cgroup/kubepods/besteffort/pod1',
  ...group,
})

describe('a trigger', () => {
  test.each([
    ['memory_full_avg10 > 5.0', { memory_full_avg10: 5.1 }, true],
    ['memory_full_avg10 > 5.0', {}, false],
    ['d_memory_some_total >= 100.0 && memory_some_avg300 < 1.0', { d_memory_some_total: 100 }, true],
    ['qos_memory_current[System] > double(512u * MiB)', { qos_memory_current: new Map([[System, 2 ** 30]]) }, true],
    [
      'multiply_qos_vectors(qos_memory_some_avg10, {System: 2.0, Burstable: 3.0}) == 32.0',
      {
        qos_memory_some_avg10: new Map([
          [System, 10],
          [Burstable, 4],
          [Podruntime, 99],
        ]),
      },
      true,
    ],
    ['multiply_qos_vectors({System: 2.0}, {Podruntime: 3.0}) == 0.0', {}, true],
    ['time_since_trigger > duration("59s") && time_since_trigger < duration("1m1s")', {}, true],
    ['time_since_trigger.getSeconds() == 60', {}, true],
  ] as [string, TriggerValues, boolean][])('%s', (text, changed, expected) => {
    expect(oomTrigger(text)(variables(changed))).toBe(expected)
  })

  test.each([
    ['1 + 1', 'the expression is of type int, not bool'],
    ['memory_full_avg11 > 5.0', 'character 1: unknown variable: memory_full_avg11'],
    ['memory_full_avg10 > 5', 'character 1: no such overload: double > int'],
    ['duration("5s") > 1', 'character 1: no such overload: google.protobuf.Duration > int'],
    ['timestamp("2024-01-01T00:00:00Z") == timestamp("2024-01-01T00:00:00Z")', 'character 1: there is no function "timestamp"'],
    ['', 'character 1: unexpected token: the end'],
  ])('%p is refused: %s', (text, problem) => {
    expect(oomExpressionProblem(oomTrigger, text)).toBe(problem)
  })

  test('fails when it names a class that is not there', () => {
    expect(() => oomTrigger('qos_memory_current[7] > 1.0')(variables())).toThrow('no such key')
  })
})

describe('the default trigger', () => {
  const shortage = {
    d_qos_memory_full_total: new Map([
      [System, 300],
      [Podruntime, 200],
    ]),
    qos_memory_full_avg10: new Map([
      [System, 4],
      [Podruntime, 2],
    ]),
  }
  const isShort = oomTrigger()

  test.each([
    ['a machine at rest', {}, false],
    ['a system that stalls', shortage, true],
    ['a system that stalls, 5 s after the last time', { ...shortage, time_since_trigger: 5_000 }, false],
    ['a system that stalled once', { ...shortage, d_qos_memory_full_total: nothing }, false],
    ['a machine that only stalls', { memory_full_avg10: 76 }, true],
    ['a machine that only stalls, 10 s after the last time', { memory_full_avg10: 76, time_since_trigger: 10_000 }, false],
  ] as [string, TriggerValues, boolean][])('%s', (_, changed, expected) => {
    expect(isShort(variables(changed))).toBe(expected)
  })
})

describe('a ranking', () => {
  test.each([
    [undefined, of({ class: Besteffort }), 1000],
    [undefined, of({ class: Burstable }), 500],
    [undefined, of({ class: Guaranteed }), 0],
    [undefined, of({ class: System }), 0],
    [undefined, of({ class: Besteffort, memory_max: 5000 }), 0],
    [undefined, of({ class: Besteffort, memory_current: undefined }), 0],
    ['path.endsWith("/pod1") ? double(memory_peak.value()) : 0.0', of({ class: Burstable }), 2000],
    ['class == Podruntime ? 1.0 : double(memory_max.or(memory_peak).orValue(7u))', of({ class: System, memory_peak: undefined }), 7],
    // As in docs/operating.md.
    [
      'class == Burstable && memory_current.orValue(0u) > 1u * GiB ? double(memory_current.orValue(0u) - 1u * GiB) : 0.0',
      of({ class: Burstable, memory_current: 2 ** 30 + 5 }),
      5,
    ],
    ['double(class)', of({ class: System }), 4],
  ] as [string | undefined, RankingValues, number][])('%p of %p is %p', (text, group, expected) => {
    expect(oomRanking(text)(group)).toBe(expected)
  })

  test.each([
    ['memory_max', 'the expression is of type optional<uint>, not double'],
    ['memory_full_avg10', 'character 1: unknown variable: memory_full_avg10'],
    ['1', 'the expression is of type int, not double'],
  ])('%s is refused: %s', (text, problem) => {
    expect(oomExpressionProblem(oomRanking, text)).toBe(problem)
  })
})
