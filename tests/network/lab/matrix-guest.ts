/** What runs inside a virtual machine: every way to an address over links of every kind, and over a cable that loses and delays. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { NetlinkSocket, netlinkProtocol } from '../../../src/linux/net/netlink-socket.ts'
import { reboot } from '../../../src/linux/system/reboot.ts'
import { attribute, text } from '../../../src/wire/netlink/attributes.ts'
import { flag } from '../../../src/wire/netlink/message.ts'
import { loadGuestModules } from './guest-modules.ts'
import { Lab } from './lab.ts'
import { goThrough, linkKinds, ways } from './matrix.ts'

const say = (line: string) => console.log(`GUEST ${line}`)
loadGuestModules()
// dnsmasq looks up the user it runs as.
mkdirSync('/etc', { recursive: true })
writeFileSync('/etc/passwd', 'root:x:0:0::/:/bin/false\n')
writeFileSync('/etc/group', 'root:x:0:\n')

/** A link that loses and delays (in milliseconds) what it sends: the queue `netem` (linux/pkt_sched.h, struct tc_netem_qopt). */
function netem(netns: string, link: number, { lossPercent, delay }: { lossPercent: number; delay: number }): void {
  using socket = new NetlinkSocket(netlinkProtocol.route, { netns })
  const head = Buffer.alloc(20) // struct tcmsg
  head.writeInt32LE(link, 4)
  head.writeUInt32LE(0xffffffff, 12) // TC_H_ROOT
  const options = Buffer.alloc(24)
  options.writeUInt32LE(Math.round((delay * 1e6) / 64), 0) // in ticks of 64 ns
  options.writeUInt32LE(1000, 4)
  options.writeUInt32LE(Math.round((lossPercent / 100) * 0xffffffff), 8)
  const newQueue = 36 // RTM_NEWQDISC
  const body = Buffer.concat([head, text(1, 'netem'), attribute(2, options)])
  socket.request('add qdisc', String(link), newQueue, body, flag.create | flag.excl)
}

async function runScenario(what: string, act: (lab: Lab) => Promise<void>): Promise<void> {
  const began = performance.now()
  const lab = new Lab()
  try {
    await act(lab)
    say(`ok ${what} (${Math.round((performance.now() - began) / 1000)} s)`)
  } catch (error) {
    say(`failed ${what}: ${error instanceof Error ? error.message.replaceAll('\n', ' | ') : String(error)}`)
    for (const { time, message, fields } of lab.machine.entries) say(`log ${time.toISOString()} ${message} ${JSON.stringify(fields)}`)
    for (const network of [lab.node, lab.server])
      for (const found of [...network.links(), ...network.addresses(), ...network.routes()]) say(`kernel ${JSON.stringify(found)}`)
  } finally {
    await lab.close()
  }
}

/** Both ends of the cable are bad, so a request and its reply can both be lost. */
function spoil(lab: Lab): void {
  const bad = { lossPercent: 5, delay: 200 }
  netem(lab.around, lab.server.indexOf('port0'), bad)
  netem(lab.nodePath, lab.node.indexOf('eth0'), bad)
}

const scenarios = [
  ...linkKinds.flatMap((kind) =>
    ways.map(
      ({ family, ways: chosen }) =>
        () =>
          runScenario(`${kind} ${family}: ${chosen.join(' and ')}`, (lab) => goThrough(lab, kind, chosen)),
    ),
  ),
  ...ways.map(
    ({ family, ways: chosen }) =>
      () =>
        runScenario(`a cable that loses 5 % and delays by 200 ms, ${family}: ${chosen.join(' and ')}`, (lab) => {
          spoil(lab)
          return goThrough(lab, 'plain', chosen)
        }),
  ),
]
say(`scenarios: ${scenarios.length}`)
// Most of each is waiting: for an address to be sure, for a router to speak.
const next = scenarios.values()
await Promise.all(
  Array.from({ length: 4 }, async () => {
    for (const scenario of next) await scenario()
  }),
)
say('end')
await Bun.sleep(200)
reboot('powerOff')
