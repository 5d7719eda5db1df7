/**
 * `bun bench/boot.ts [--image dist] [--append PARAMETERS] [--timeout 300]`: an emulated machine from power-on to its API, by
 * the guest's own clock, and the memory it has in use then.
 */
import { mkdtempSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect } from '../src/rpc/client/channel.ts'
import { guestTime, TestMachine } from '../tests/vm/machine.ts'

const { values } = parseArgs({
  options: {
    image: { type: 'string', default: join(import.meta.dir, '../dist') },
    append: { type: 'string', default: '' },
    timeout: { type: 'string', default: '300' },
  },
})

const phases: readonly [name: string, line: RegExp][] = [
  ['kernel hands over to stage 0', /Run \/init as init process/],
  ['init runs', /Ichor v\d/],
  ['services begin', /phase=earlyServices/],
  ['containerd answers', /service=containerd .*Health check successful/],
  ['devices are named', /service=udevd .*Health check successful/],
  ['the address is known', /maintenance: waiting .*addresses=\d/],
  ['API answers', /service=apid .*Health check successful/],
]

const log = join(mkdtempSync(join(tmpdir(), 'ichor-boot-')), 'console.log')
const deadline = Number(values.timeout) * 1000
const machine = await TestMachine.start({ image: values.image, console: log, append: values.append })
try {
  await Promise.all(phases.map(([, line]) => machine.shows(line, deadline)))
  const channel = connect({ address: `127.0.0.1:${machine.port}`, tls: { insecure: true } })
  const { messages } = await channel.unary('machine.MachineService/Version', {}, { deadline: 30_000 })
  channel.close()
  console.log(`${messages[0]?.version?.tag} under emulation, load ${loadavg()[0]?.toFixed(1)}; console: ${log}`)
  for (const [name, line] of phases) console.log(`${name.padEnd(30)} ${guestTime(machine.console, line)?.toFixed(1).padStart(6)} s`)
} finally {
  await machine.unplug()
}
