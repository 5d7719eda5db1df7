import { expect, test } from 'bun:test'
import { exposition, type Metric } from '../../../../src/os/telemetry/metrics/exposition.ts'

const metrics: Metric[] = [
  {
    name: 'a',
    help: 'One "line"\nand \\.',
    type: 'gauge',
    samples: [
      [{ of: 'x"\\\n' }, 1.5],
      [{}, Number.POSITIVE_INFINITY],
      [{ of: 'nothing' }, Number.NaN],
    ],
  },
  { name: 'b', help: 'Nothing.', type: 'counter', samples: [] },
  { name: 'c_total', help: 'Counted.', type: 'counter', samples: [[{}, 3]] },
  { name: 'd', help: 'Either.', type: 'unknown', samples: [[{}, 4]] },
  {
    name: 'e_seconds',
    help: 'Durations.',
    type: 'histogram',
    samples: [
      [{ le: 0.5 }, 1, '_bucket'],
      [{ le: 1 }, 2, '_bucket'],
      [{ le: '+Inf' }, 2, '_bucket'],
      [{}, 0.9, '_sum'],
      [{}, 2, '_count'],
    ],
  },
]

test('the text format: labels escaped, infinities spelled, empty metrics left out', () => {
  expect(exposition(metrics)).toBe(`\
# HELP a One "line"\\nand \\\\.
# TYPE a gauge
a{of="x\\"\\\\\\n"} 1.5
a +Inf
a{of="nothing"} NaN
# HELP c_total Counted.
# TYPE c_total counter
c_total 3
# HELP d Either.
# TYPE d untyped
d 4
# HELP e_seconds Durations.
# TYPE e_seconds histogram
e_seconds_bucket{le="0.5"} 1
e_seconds_bucket{le="1"} 2
e_seconds_bucket{le="+Inf"} 2
e_seconds_sum 0.9
e_seconds_count 2
`)
})

test('OpenMetrics: counters are named without their suffix, bounds are floats, and the end is marked', () => {
  expect(exposition(metrics, 'openmetrics')).toBe(`\
# HELP a One \\"line\\"\\nand \\\\.
# TYPE a gauge
a{of="x\\"\\\\\\n"} 1.5
a +Inf
a{of="nothing"} NaN
# HELP c Counted.
# TYPE c counter
c_total 3
# HELP d Either.
# TYPE d unknown
d 4
# HELP e_seconds Durations.
# TYPE e_seconds histogram
e_seconds_bucket{le="0.5"} 1
e_seconds_bucket{le="1.0"} 2
e_seconds_bucket{le="+Inf"} 2
e_seconds_sum 0.9
e_seconds_count 2
# EOF
`)
  expect(exposition([], 'openmetrics')).toBe('# EOF\n')
})
