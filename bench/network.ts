/**
 * The network's figures, in namespaces of their own: `bun bench/network.ts [--runs N]` as root. Convergence is counted from
 * the moment a configuration is put in force to the moment the kernel has all of it; a lease from the carrier of the link to
 * its address, beside the time the server itself took by its own log.
 */

import { parseArgs } from 'node:util'
import { table } from '../src/programs/talosctl/output/table.ts'
import { servers4 } from '../tests/network/lab/dhcp-servers.ts'
import { dnsmasq } from '../tests/network/lab/dnsmasq.ts'
import { Lab } from '../tests/network/lab/lab.ts'
import { median } from './median.ts'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' } } })
const runs = Number(values.runs)
const milliseconds = (list: readonly number[]) =>
  `${median(list).toFixed(0)} (${Math.min(...list).toFixed(0)}–${Math.max(...list).toFixed(0)})`

/** Looks again and again; a look at thousands of routes takes milliseconds itself, so there are pauses. */
async function until(holds: () => boolean, pause = 2): Promise<number> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, pause))
  return performance.now()
}

const nets = (count: number) => Array.from({ length: count }, (_, n) => `10.${32 + (n >> 8)}.${n & 255}`)
const document = (count: number) => {
  const many = nets(count)
  const addresses = many.map((net) => `  - {address: ${net}.1/24}\n`).join('')
  const routes = many.map((net, n) => `  - {destination: 172.${16 + (n >> 8)}.${n & 255}.0/24, gateway: ${net}.9}\n`).join('')
  return `kind: LinkConfig\nname: eth0\naddresses:\n${addresses}routes:\n${routes}`
}

const rows: string[][] = []
const report = (what: string, figure: string) => {
  console.error(`${what}: ${figure}`)
  rows.push([what, figure])
}

for (const count of [1, 100, 1000]) {
  const came: number[] = []
  const busy: number[] = []
  const one: number[] = []
  const went: number[] = []
  for (let run = 0; run < runs; run++) {
    const lab = new Lab()
    lab.say('kind: LinkConfig\nname: eth0\n')
    await lab.machine.os.settled()
    const present = () => lab.node.addresses().filter(({ scope, family }) => scope === 0 && family === 2).length
    const routed = () => lab.node.routes().filter(({ protocol }) => protocol === 4).length
    let since = performance.now()
    const processor = process.cpuUsage()
    lab.say(document(count))
    came.push((await until(() => routed() === count && present() === count, count > 100 ? 20 : 2)) - since)
    const { user, system } = process.cpuUsage(processor)
    busy.push((user + system) / 1000)
    await lab.machine.os.settled()
    since = performance.now()
    lab.say(`${document(count)}`.replace('routes:\n', 'routes:\n  - {destination: 192.0.2.0/24, gateway: 10.32.0.9}\n'))
    one.push((await until(() => lab.route('192.0.2.0/24') !== undefined, count > 100 ? 20 : 2)) - since)
    await lab.machine.os.settled()
    since = performance.now()
    lab.say('kind: LinkConfig\nname: eth0\n')
    went.push((await until(() => present() === 0 && routed() === 0, count > 100 ? 20 : 2)) - since)
    await lab.close()
  }
  report(`${count} addresses and ${count} routes: all present`, milliseconds(came))
  report('  of that, time of the processor (this look included)', milliseconds(busy))
  report(`one route added to ${count}`, milliseconds(one))
  report(`${count} addresses and ${count} routes: all removed`, milliseconds(went))
}

const server = dnsmasq && servers4.dnsmasq
if (server) {
  const whole: number[] = []
  for (let run = 0; run < runs; run++) {
    const lab = new Lab()
    lab.node.setLink('eth0', { up: true })
    lab.server.setLink('port0', { up: false })
    await server.start(lab, { first: '10.8.0.50', last: '10.8.0.99', lifetime: 300, renew: 100, rebind: 200 })
    lab.say('kind: DHCPv4Config\nname: eth0\n')
    await lab.machine.os.settled()
    const since = performance.now()
    lab.server.setLink('port0', { up: true })
    const end = await until(() => lab.addresses().length > 0 && lab.route(undefined) !== undefined)
    whole.push(end - since)
    await lab.close()
  }
  report('carrier to address and route by DHCP (dnsmasq)', milliseconds(whole))
}

const lab = new Lab()
lab.say('kind: LinkConfig\nname: eth0\n')
await lab.machine.os.settled()
Bun.gc(true)
const before = process.memoryUsage.rss()
lab.say(document(1000))
await until(() => lab.node.routes().filter(({ protocol }) => protocol === 4).length === 1000)
await lab.machine.os.settled()
Bun.gc(true)
rows.push([
  'memory for 1,000 addresses and 1,000 routes, as specs and statuses',
  `${((process.memoryUsage.rss() - before) / 2 ** 20).toFixed(0)} MB`,
])
await lab.close()

console.log(table([['WHAT', 'MS: MEDIAN (LEAST–MOST)'], ...rows]))
