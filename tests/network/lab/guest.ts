/**
 * What runs inside a virtual machine whose kernel has what the development machine's lacks: the controllers of links over
 * that kernel. Each check is a line on the console; then the machine ends.
 */
import { createLogger } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import * as packet from '../../../src/linux/net/packet.ts'
import * as net from '../../../src/linux/net/rtnetlink.ts'
import * as wireguard from '../../../src/linux/net/wireguard.ts'
import { reboot } from '../../../src/linux/system/reboot.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { bondValues } from '../../../src/os/network/documents/bond.ts'
import { LinkStatus } from '../../../src/os/network/resources/link.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { addressing } from './controllers.ts'
import { loadGuestModules } from './guest-modules.ts'
import { workerConfig } from './namespaces.ts'

const say = (line: string) => console.log(`GUEST ${line}`)

loadGuestModules()

const store = new Store()
const os = new Runtime(store, {
  log: createLogger(({ level, message, fields }) => say(`log ${level} ${message} ${JSON.stringify(fields)}`)),
})
const kernel = { mode: 'metal', files, net, packet, wireguard } as unknown as Kernel
os.register(...addressing(kernel))
store.put(DevicesStatus, 'devices', { ready: true }) // there is no udevd here to wait for
os.start()

const network = net.openNetwork()
for (const name of ['eth8', 'eth9']) network.addVeth({ name, peer: { name: `${name}p`, up: true } })
const key = (letter: string) => Buffer.alloc(32, letter).toString('base64')
const config = (...documents: string[]) => store.put(MachineConfig, 'v1alpha1', workerConfig(...documents.map((text) => `${text}\n`)))

async function expectThat(what: string, holds: () => boolean | undefined): Promise<void> {
  const end = performance.now() + 60_000
  while (performance.now() < end) {
    if (holds()) return say(`ok ${what}`)
    await Bun.sleep(50)
  }
  say(
    `failed ${what}: ${JSON.stringify(network.links().map(({ name, kind, data, master, flags }) => ({ name, kind, data, master, flags })))}`,
  )
}

const link = (name: string) => network.link(name)
const bond = (mode: string, more = '') =>
  `kind: BondConfig\nname: bond0\nlinks: [eth8, eth9]\nbondMode: ${mode}\nmiimon: 100\nupdelay: 200\n${more}`
const bondOf = (mode: string, options: string) => `kind: BondConfig\nname: bond0\nlinks: [eth8, eth9]\nbondMode: ${mode}\n${options}`
/** For each mode, its options in a document and the kernel's values for them. */
const settings: Record<string, { options: string; applied: Record<string, number | string[]> }> = {
  'balance-rr': {
    options: 'miimon: 100\nupdelay: 300\ndowndelay: 200\nuseCarrier: true\npacketsPerSlave: 5\nresendIGMP: 3\nallSlavesActive: 1',
    applied: { miimon: 100, updelay: 300, downdelay: 200, useCarrier: 1, packetsPerSlave: 5, resendIgmp: 3, allSlavesActive: 1 },
  },
  'active-backup': {
    options:
      'arpInterval: 200\narpIpTargets: [10.5.0.9]\nnsIp6Targets: ["fd00:5::9"]\narpValidate: active\narpAllTargets: all\nmissedMax: 3\nfailOverMac: active\nprimaryReselect: better',
    applied: {
      ...{ miimon: 0, arpInterval: 200, arpIpTargets: ['10.5.0.9'], nsIp6Targets: ['fd00:5::9'], arpValidate: 1, arpAllTargets: 1 },
      ...{ missedMax: 3, failOverMac: 1, primaryReselect: 1 },
    },
  },
  'balance-xor': { options: 'miimon: 100\nxmitHashPolicy: layer2+3', applied: { miimon: 100, arpInterval: 0, xmitHashPolicy: 2 } },
  broadcast: {
    options: 'miimon: 50\nnumPeerNotif: 3\npeerNotifDelay: 100',
    applied: { miimon: 50, numPeerNotif: 3, peerNotifyDelay: 100 },
  },
  'balance-tlb': { options: 'miimon: 100\ntlbLogicalLb: 0\nlpInterval: 3', applied: { tlbLogicalLb: 0, lpInterval: 3 } },
  'balance-alb': {
    options: 'miimon: 100\nprimaryReselect: failure\nxmitHashPolicy: encap3+4',
    applied: { primaryReselect: 2, xmitHashPolicy: 4 },
  },
  '802.3ad': {
    options:
      'miimon: 100\nupdelay: 0\ndowndelay: 0\nlacpRate: slow\nadSelect: count\nadActorSysPrio: 100\nadUserPortKey: 5\nadLACPActive: off\nminLinks: 1',
    applied: { lacpRate: 0, adSelect: 2, adActorSysPrio: 100, adUserPortKey: 5, adLacpActive: 0, minLinks: 1 },
  },
}
const vlan = (id: number) => `kind: VLANConfig\nname: bond0.5\nvlanID: ${id}\nparent: bond0\nmtu: 1400\naddresses: [{address: 10.5.0.1/24}]`

const first = `{publicKey: ${key('p')}, endpoint: "10.5.0.9:51820", persistentKeepaliveInterval: 25s, allowedIPs: [10.9.0.0/24]}`
const second = `{publicKey: ${key('q')}, endpoint: "10.5.0.8:51820", allowedIPs: [10.8.0.0/24]}`
/** Links of every kind; the tunnel has these peers. */
const everything = (peers: string) => [
  bond('active-backup', 'arpValidate: none'),
  vlan(5),
  'kind: DummyLinkConfig\nname: dummy9\nhardwareAddr: "02:00:00:00:00:09"\naddresses: [{address: fd00:9::1/64}]',
  'kind: BridgeConfig\nname: br0\nvlan: {filtering: true}',
  'kind: VRFConfig\nname: red\ntable: "123"\nlinks: [dummy9]',
  `kind: WireguardConfig\nname: wg0\nprivateKey: ${key('a')}\nlistenPort: 51820\naddresses: [{address: 10.9.0.1/24}]\npeers: [${peers}]`,
]

try {
  config(...everything(first))
  await expectThat(
    'bond',
    () => link('bond0')?.data.mode === 1 && link('eth8')?.master === link('bond0')?.index && link('eth9')?.master !== undefined,
  )
  await expectThat('bond settings', () => link('bond0')?.data.miimon === 100 && link('bond0')?.data.updelay === 200)
  await expectThat(
    'vlan',
    () => link('bond0.5')?.data.id === 5 && link('bond0.5')?.parent === link('bond0')?.index && link('bond0.5')?.mtu === 1400,
  )
  await expectThat('vlan address', () =>
    network.addresses().some(({ address, link: on }) => address === '10.5.0.1/24' && on === link('bond0.5')?.index),
  )
  await expectThat('dummy', () => link('dummy9')?.hardwareAddress === '02:00:00:00:00:09' && link('dummy9')?.kind === 'dummy')
  await expectThat('vrf', () => link('red')?.data.table === 123 && link('dummy9')?.master === link('red')?.index)
  await expectThat('bridge with VLAN filtering', () => link('br0')?.data.vlanFiltering === 1)
  await expectThat('wireguard', () => {
    const { index = 0 } = link('wg0') ?? {}
    if (index === 0) return false
    const { peers, listenPort } = wireguard.wireguardDevice(index)
    return (
      listenPort === 51820 &&
      peers[0]?.endpoint === '10.5.0.9:51820' &&
      peers[0].keepalive === 25 &&
      peers[0].allowedIPs[0] === '10.9.0.0/24'
    )
  })
  await expectThat('statuses', () => {
    const of = (name: string) => store.get(LinkStatus, name)?.spec
    return (
      of('bond0')?.bondMaster?.mode === 'active-backup' &&
      of('bond0.5')?.vlan?.vlanID === 5 &&
      (of('wg0')?.wireguard?.peers.length ?? 0) === 1
    )
  })
  config(...everything(`${first}, ${second}`))
  await expectThat('the status of a tunnel with a peer more, which the kernel does not announce', () => {
    const peers = store.get(LinkStatus, 'wg0')?.spec.wireguard?.peers ?? []
    return peers.length === 2 && peers.some(({ endpoint }) => endpoint === '10.5.0.8:51820')
  })
  const before = link('bond0')?.index
  config(bond('802.3ad', 'lacpRate: fast\nxmitHashPolicy: layer3+4'), vlan(6))
  await expectThat('a bond of another mode, the same link', () => {
    const { data, index } = link('bond0') ?? {}
    return index === before && data?.mode === 4 && data.lacpRate === 1 && data.xmitHashPolicy === 1 && link('eth8')?.master === index
  })
  for (const [mode, { options, applied }] of Object.entries(settings)) {
    config(bondOf(mode, options))
    await expectThat(`a bond of mode ${mode} with what belongs to it`, () => {
      const { data, index } = link('bond0') ?? {}
      const all = { mode: bondValues.mode.indexOf(mode as (typeof bondValues.mode)[number]), ...applied }
      const holds = Object.entries(all).every(([name, value]) => Bun.deepEquals(data?.[name], value))
      return holds && index === before && link('eth8')?.master === index && link('eth9')?.master === index
    })
  }
  config(bond('802.3ad'), vlan(6))
  await expectThat('another VLAN number', () => link('bond0.5')?.data.id === 6)
  await expectThat('links without configuration are gone', () => ['wg0', 'dummy9', 'red', 'br0'].every((name) => link(name) === undefined))
  network.removeLink('bond0')
  await expectThat(
    'what was removed by hand is back',
    () => link('bond0.5')?.data.id === 6 && link('eth9')?.master === link('bond0')?.index,
  )
  config()
  await expectThat(
    'all gone but the links themselves',
    () => link('bond0') === undefined && link('eth8') !== undefined && link('eth8')?.master === undefined,
  )
} catch (error) {
  say(`failed with ${error instanceof Error ? error.stack : String(error)}`)
}
say('end')
await Bun.sleep(200)
reboot('powerOff')
