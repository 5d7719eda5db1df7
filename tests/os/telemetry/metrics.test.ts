import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { metrics } from '../../../src/os/telemetry/api/metrics.ts'
import { AuditLog } from '../../../src/os/telemetry/audit/audit-log.ts'
import { Calls } from '../../../src/os/telemetry/calls.ts'
import { observeCalls } from '../../../src/os/telemetry/controllers/api-call.ts'
import { exposition } from '../../../src/os/telemetry/metrics/exposition.ts'
import type { Context } from '../../../src/rpc/server/method.ts'
import { Supervisor } from '../../../src/supervise/supervisor.ts'
import { talosctl } from '../../programs/talosctl/peer.ts'

test('text is as Prometheus reads it: labels escaped, infinities spelled, empty metrics left out', () => {
  const text = exposition([
    {
      name: 'a',
      help: 'One\nline.',
      type: 'gauge',
      samples: [
        [{ of: 'x"\\\n' }, 1.5],
        [{}, Number.POSITIVE_INFINITY],
      ],
    },
    { name: 'b', help: 'Nothing.', type: 'counter', samples: [] },
  ])
  expect(text).toBe('# HELP a One\\nline.\n# TYPE a gauge\na{of="x\\"\\\\\\n"} 1.5\na +Inf\n')
})

async function machine() {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const calls = new Calls(new AuditLog({ write() {} }))
  runtime.register(observeCalls(calls.audit))
  runtime.start()
  await runtime.settled()
  const version = { name: 'Ichor', tag: 'v1.13.0', sha: 'abc', built: '', arch: 'amd64' }
  return { store, runtime, calls, version, supervisor: new Supervisor({ store }), kernel: { files } as Kernel }
}

test('a machine exports its own counters and the kernel’s, every line in the format', async () => {
  const it = await machine()
  const method = metrics(it)
  const call = { method, roles: new Set(['os:reader'] as const), metadata: {}, peer: 'unix' }
  for (const milliseconds of [0.2, 3, 99_000]) {
    it.calls.began(call)
    it.calls.ended(call, 'OK', milliseconds)
  }
  it.calls.began(call)
  const { messages } = (await method.handle({} as never, {} as Context)) as { messages: { text: string }[] }
  const text = messages[0]!.text
  for (const line of text.trimEnd().split('\n'))
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? (-?[\d.e+-]+|\+Inf|NaN))$/)
  const label = 'method="ichor.v1.MetricsService/Metrics"'
  expect(text).toContain(`ichor_api_calls_total{${label},code="OK"} 3\n`)
  expect(text).toContain(`ichor_api_calls_running{${label}} 1\n`)
  expect(text).toContain(`ichor_api_call_duration_seconds_bucket{${label},le="0.0005"} 1\n`)
  expect(text).toContain(`ichor_api_call_duration_seconds_bucket{${label},le="10"} 2\n`)
  expect(text).toContain(`ichor_api_call_duration_seconds_bucket{${label},le="+Inf"} 3\n`)
  expect(text).toContain(`ichor_api_call_duration_seconds_count{${label}} 3\n`)
  expect(text).toContain('ichor_controller_rounds_total{controller="runtime.APICallController"} 1\n')
  expect(text).toMatch(/^ichor_process_resident_memory_bytes\{service="machined"\} \d{7,}$/m)
  expect(text).toMatch(/^node_memory_MemTotal_bytes \d{8,}$/m)
  expect(text).toMatch(/^node_cpu_seconds_total\{cpu="0",mode="idle"\} [\d.]+$/m)
  expect(text).toMatch(/^node_filesystem_size_bytes\{mountpoint="\/"\} \d+$/m)
  it.runtime.stop()
})

test('talosctl metrics prints them, or a selection', async () => {
  const it = await machine()
  const all = await talosctl([metrics(it)], ['metrics'])
  expect(all.code).toBe(0)
  expect(all.stdout).toContain('# TYPE node_load1 gauge\n')
  const some = await talosctl([metrics(it)], ['metrics', '--name', 'ichor_build'])
  expect(some.stdout).toBe(
    '# HELP ichor_build_info The build that runs.\n# TYPE ichor_build_info gauge\nichor_build_info{version="v1.13.0",sha="abc",arch="amd64"} 1\n',
  )
  it.runtime.stop()
})
