import { expect, test } from 'bun:test'
import { stopReasonOf } from '../../../src/programs/node-supervisor/run-node.ts'

test.each([
  [0, null, false, 'shut down'],
  [130, null, false, 'powered off'],
  [129, null, true, 'rebooted'],
  [137, null, true, 'init was killed by SIGKILL'],
  [134, null, true, 'init was killed by SIGABRT'],
  [1, null, true, 'init exited with code 1'],
  [null, 'SIGKILL', true, 'runc was killed by SIGKILL'],
] as const)('exit code %p, signal %p: started again %p', (code, signal, again, text) => {
  expect(stopReasonOf(code, signal)).toEqual({ again, text })
})
