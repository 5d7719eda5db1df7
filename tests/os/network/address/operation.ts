import { silent } from '../../../../src/cosi/log.ts'
import type { Operation } from '../../../../src/os/network/operators/operator.ts'

/** What the operator of a shared address runs with; waits end at once, but for the one that lasts as long as the election. */
export const operationOf = (given: Pick<Operation, 'spec' | 'signal' | 'report'> & Partial<Operation>): Operation => ({
  link: { index: 2, name: given.spec.linkName, hardwareAddress: '02:00:00:00:00:01' },
  log: silent,
  clock: {
    now: () => 0,
    sleep: (milliseconds, signal) =>
      milliseconds < 3_600_000 || signal.aborted
        ? Promise.resolve()
        : new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
  },
  hostname: () => '',
  present: () => false,
  taken: () => undefined,
  linkLocal: () => undefined,
  memory: new Map(),
  problem: () => {},
  ...given,
})
