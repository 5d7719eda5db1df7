import { expect, test } from 'bun:test'
import { MetaKey } from '../../../../src/os/runtime/resources/meta.ts'
import { metrics } from '../../../../src/os/telemetry/api/metrics.ts'
import { collect } from '../../../../src/os/telemetry/metrics/collect.ts'
import { exposition } from '../../../../src/os/telemetry/metrics/exposition.ts'
import { fileSystemMetrics } from '../../../../src/os/telemetry/metrics/file-system-metrics.ts'
import { diskMetrics, memoryUseMetrics, pressureMetrics } from '../../../../src/os/telemetry/metrics/node-metrics.ts'
import type { Context } from '../../../../src/rpc/server/method.ts'
import { talosctl } from '../../../programs/talosctl/peer.ts'
import { fill, machine } from './machine.ts'

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
  expect(text).toMatch(/^node_filesystem_size_bytes\{device="[^"]*",fstype="\w+",mountpoint="\/"\} \d+$/m)
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

test('the state of the system: trials, certificates, members of etcd, deliveries, peers', async () => {
  const it = await machine()
  fill(it.store)
  it.config.state.trial = { kind: 'confirm' }
  const text = exposition(collect(it))
  for (const line of [
    'ichor_machine_stage{stage="running"} 1',
    'ichor_machine_ready 1',
    'ichor_diagnostics 1',
    'ichor_release_on_trial 1',
    'ichor_release_failed{version="v1.12.9"} 1',
    'ichor_configuration_on_trial 1',
    'ichor_component_on_trial{component="etcd"} 1',
    'ichor_certificate_expiration_timestamp_seconds{certificate="api-server"} 1767229200',
    'ichor_certificate_expiration_timestamp_seconds{certificate="os-ca"} 1770825600',
    'ichor_etcd_members 2',
    'ichor_etcd_writable 1',
    'ichor_etcd_member_in_use_bytes{member="two"} 2048',
    'ichor_delivery_connected{source="logs",destination="tcp://192.0.2.1:5140/"} 0',
    'ichor_delivery_dropped_bytes_total{source="logs",destination="tcp://192.0.2.1:5140/"} 300',
    'ichor_kubespan_peers{state="up"} 1',
    'ichor_kubespan_peers{state="down"} 0',
    'node_timex_offset_seconds -0.0015',
    'node_timex_sync_status 1',
    'node_scrape_collector_success{collector="etcd"} 1',
  ])
    expect(text).toContain(`\n${line}\n`)
  it.runtime.stop()
})

test('every metric is there once, and counters alone end in _total', async () => {
  const it = await machine()
  fill(it.store)
  const all = collect(it)
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
  expect(all.filter(({ name, type }) => name.endsWith('_total') !== (type === 'counter'))).toEqual([])
  it.runtime.stop()
})

test('a machine without a configuration has no trial, and a value that is not JSON does no harm', async () => {
  const it = await machine()
  it.store.put(MetaKey, '0x20', { value: 'not JSON' })
  const text = exposition(collect(it))
  expect(text).toContain('\nichor_release_on_trial 0\n')
  expect(text).toContain('\nichor_configuration_on_trial 0\n')
  expect(text).not.toContain('ichor_release_failed')
  expect(text).not.toContain('ichor_machine_stage')
  it.runtime.stop()
})

test('a group that cannot be read is left out and reported', async () => {
  const it = await machine()
  const readText = (path: string) => (path === '/proc/stat' ? 'cpu x' : it.kernel.files.readText(path))
  const text = exposition(collect({ ...it, kernel: { ...it.kernel, files: { ...it.kernel.files, readText } } }))
  expect(text).not.toContain('node_cpu_seconds_total')
  expect(text).toContain('node_scrape_collector_success{collector="cpu"} 0\n')
  expect(text).toContain('node_scrape_collector_success{collector="meminfo"} 1\n')
  expect(text).toContain('node_load1 ')
  it.runtime.stop()
})

test('file systems of containers and of the network are not read; one device is reported once', () => {
  const mountinfo = [
    '1 0 0:1 / / rw - squashfs /dev/loop0 ro',
    '2 1 8:1 / /var rw - xfs /dev/sda6 rw',
    '3 1 8:1 /lib/x /var/lib/x rw - xfs /dev/sda6 rw',
    '4 1 8:2 / /var/mnt/data rw - xfs /dev/sdb1 rw',
    '5 1 8:2 /a /var/mnt/other/longer rw - xfs /dev/sdb1 rw',
    '6 1 0:9 / /var/nfs rw - nfs4 server:/x rw',
    '7 1 0:10 / /var/lib/kubelet/pods/1/volumes/x rw - tmpfs tmpfs rw',
    '8 1 0:11 / /gone rw - tmpfs tmpfs rw',
  ].join('\n')
  const paths: string[] = []
  const statfs = (path: string) => {
    paths.push(path)
    if (path === '/gone') throw new Error('ENOENT')
    return { type: 0, blockSize: 1, size: 10, free: 5, available: 4, files: 3, filesFree: 2 }
  }
  const text = exposition(fileSystemMetrics({ readText: () => mountinfo, statfs }))
  expect(paths).toEqual(['/', '/var', '/gone', '/var/mnt/data'])
  expect(text).toContain('node_filesystem_avail_bytes{device="/dev/sdb1",fstype="xfs",mountpoint="/var/mnt/data"} 4\n')
  expect(text).toContain('node_filesystem_readonly{device="/dev/loop0",fstype="squashfs",mountpoint="/"} 1\n')
  expect(text).toContain('node_filesystem_readonly{device="/dev/sda6",fstype="xfs",mountpoint="/var"} 0\n')
})

test('pressure in seconds; a kernel that has it turned off has none', () => {
  const line = (total: number) => `avg10=0.00 avg60=0.00 avg300=0.00 total=${total}`
  const files = (read: (path: string) => string | undefined) => ({ readText: () => '', readTextIfThere: read })
  const io = exposition(pressureMetrics(files((path) => (path.endsWith('/io') ? `some ${line(1_500_000)}\nfull ${line(5)}\n` : undefined))))
  expect(io).toContain('\nnode_pressure_io_waiting_seconds_total 1.5\n')
  expect(io).toContain('\nnode_pressure_io_stalled_seconds_total 0.000005\n')
  expect(io).not.toContain('memory')
  const off = () => {
    throw new Error('EOPNOTSUPP')
  }
  expect(pressureMetrics(files(off))).toEqual([])
})

test('memory has the names of the node exporter, disks count no partition', () => {
  const files = (text: string) => ({ readText: () => text, readTextIfThere: () => undefined })
  const memory = exposition(memoryUseMetrics(files('MemTotal:  2 kB\nActive(anon):  1 kB\nHugePages_Total:  3\n')))
  expect(memory.split('\n').filter((line) => !line.startsWith('#'))).toEqual([
    'node_memory_MemTotal_bytes 2048',
    'node_memory_Active_anon_bytes 1024',
    'node_memory_HugePages_Total 3',
    '',
  ])
  const disk = (name: string) => `8 0 ${name} 1 2 4 500 5 6 8 9 10 11 12`
  const disks = diskMetrics(files(['sda', 'sda1', 'nvme0n1', 'nvme0n1p2', 'loop3', 'vdb'].map(disk).join('\n')))
  expect(disks[0]?.samples.map(([labels, value]) => [labels.device, value])).toEqual([
    ['sda', 2048],
    ['nvme0n1', 2048],
    ['vdb', 2048],
  ])
  expect(disks.find(({ name }) => name === 'node_disk_read_time_seconds_total')?.samples[0]?.[1]).toBe(0.5)
})

test('services: state, and how often each was started', async () => {
  const it = await machine()
  const { promise, resolve } = Promise.withResolvers<void>()
  it.supervisor.load({
    id: 'one',
    dependsOn: [],
    restart: 'never',
    runner: async () => ({ description: 'Started', exit: promise.then(() => ({ ok: true, message: 'done' })), kill: () => resolve() }),
  })
  const text = () => exposition(collect(it))
  expect(text()).toContain('\nichor_service_starts_total{service="one"} 0\n')
  it.supervisor.start('one')
  await it.supervisor.until('one', 'up', AbortSignal.timeout(5000))
  expect(text()).toContain('\nichor_service_running{service="one"} 1\n')
  expect(text()).toContain('\nichor_service_state{service="one",state="Running"} 1\n')
  expect(text()).toContain('\nichor_service_starts_total{service="one"} 1\n')
  await it.supervisor.stop('one')
  expect(text()).toContain('\nichor_service_running{service="one"} 0\n')
  it.runtime.stop()
})
