/**
 * What the delivery of logs costs init: lines are written to a log at a rate, and one process of our own delivers them as a node does
 * (the same controllers, memory, disk and sockets) to a receiver over TCP or TLS in another process. Processor time and memory are
 * those of the delivering process alone, which writes the lines too.
 *
 *   bun bench/shipping.ts [--rate 10000] [--seconds 60] [--destinations 1]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/cosi/clock.ts'
import { silent } from '../src/cosi/log.ts'
import { Runtime } from '../src/cosi/runtime.ts'
import { Store } from '../src/cosi/store.ts'
import * as files from '../src/linux/fs/files.ts'
import * as socket from '../src/linux/net/socket.ts'
import { MachineConfig } from '../src/os/config/resources/machine-config.ts'
import { NetworkStatus } from '../src/os/network/resources/network-status.ts'
import { Outbound } from '../src/os/outbound.ts'
import { LogFiles } from '../src/os/runtime/log-files.ts'
import { deliverLogs } from '../src/os/telemetry/controllers/log-delivery.ts'
import { configLogDestinations } from '../src/os/telemetry/controllers/log-destination.ts'
import { DeliveryStatus } from '../src/os/telemetry/resources/delivery-status.ts'
import { Deliveries } from '../src/os/telemetry/shipping/deliveries.ts'
import { Logs } from '../src/supervise/logs.ts'

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '60' },
    destinations: { type: 'string', default: '1' },
  },
})
const [rate, seconds, count] = [values.rate, values.seconds, values.destinations].map(Number) as [number, number, number]

/** Accepts connections on a free port, prints it, and drops what it receives. */
const receiver = `const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }); console.log(server.port)`
const child = Bun.spawn([process.execPath, '-e', receiver], { stdin: 'ignore', stdout: 'pipe' })
const { value } = await child.stdout.getReader().read()
const port = Number(Buffer.from(value ?? []).toString())

const folder = mkdtempSync(join(tmpdir(), 'ichor-bench-'))
const store = new Store()
const runtime = new Runtime(store, { log: silent })
const logs = new Logs()
const logFiles = new LogFiles({ files, log: silent, logs: () => logs.entries() }, folder)
const outbound = new Outbound({ publicRoots: '', addedRoots: () => '', variables: () => [] })
const deliveries = new Deliveries(systemClock, silent)
const dependencies = { kernel: { socket }, supervisor: { logs }, logFiles, outbound, deliveries, log: silent, clock: systemClock }
runtime.register(configLogDestinations, deliverLogs(dependencies))
runtime.start()
store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
const destination = { endpoint: `tcp://127.0.0.1:${port}`, format: 'json_lines', extraTags: { site: 'east' } }
const machine = { type: 'worker', logging: { destinations: Array.from({ length: count }, () => destination) } }
if (count > 0) store.put(MachineConfig, 'v1alpha1', JSON.stringify({ version: 'v1alpha1', machine }))
logFiles.open()

/** Lines as etcd and the kubelet write them, alternating: an object and text. */
function line(number: number): string {
  if (number % 2 === 0)
    return `{"level":"info","ts":"2026-11-24T10:00:00.123456Z","caller":"mvcc/index.go:214","msg":"compact tree index","revision":${number}}`
  return `I1124 10:00:00.123456    1234 reconciler_common.go:251] "operationExecutor.VerifyControllerAttachedVolume started" line=${number}`
}

/** Services write in pieces, so a hundredth of a second is written at once. */
const perTick = rate / 100
const log = logs.open('etcd')
const began = performance.now()
let written = 0
let flushed = began
const before = process.cpuUsage()
const memory: number[] = []
while (performance.now() - began < seconds * 1000) {
  const due = Math.min(rate * seconds, ((performance.now() - began) / 1000) * rate)
  while (written + perTick <= due) {
    let text = ''
    for (let each = 0; each < perTick; each++) text += `${line(written++)}\n`
    log.write(text)
  }
  if (performance.now() - flushed > 200) {
    await logFiles.flush({ large: true })
    flushed = performance.now()
    memory.push(process.memoryUsage.rss())
  }
  await Bun.sleep(10)
}
const used = process.cpuUsage(before)
const elapsed = (performance.now() - began) / 1000
await Bun.sleep(8000) // until the counts are published
const statuses = store.list(DeliveryStatus).map(({ spec }) => spec)
const mebibytes = (bytes: number | undefined) => `${Math.round((bytes ?? 0) / 2 ** 20)} MiB`
console.log(
  [
    `${count} destinations`,
    `${Math.round(written / elapsed)} lines/s`,
    `${(((used.user + used.system) / 1e6 / elapsed) * 100).toFixed(1)} % of a core`,
    `${((used.user + used.system) / written).toFixed(1)} µs a line`,
    `memory ${mebibytes(memory[Math.floor(memory.length / 4)])} after a quarter, ${mebibytes(memory.at(-1))} at the end`,
    `sent ${statuses.map(({ sent }) => sent).join(' ')} of ${written}`,
    `lost ${statuses.map(({ droppedBytes }) => droppedBytes).join(' ')} bytes`,
  ].join(' | '),
)
runtime.stop()
child.kill()
rmSync(folder, { recursive: true })
process.exit(0)
