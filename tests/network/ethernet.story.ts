import { afterEach, beforeEach, expect, test } from 'bun:test'
import { openEthernet } from '../../src/linux/net/ethtool.ts'
import type { Network } from '../../src/linux/net/rtnetlink.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { applyEthernet, configEthernet, observeEthernet } from '../../src/os/network/controllers/link/ethernet.ts'
import { observeLinks } from '../../src/os/network/controllers/observe.ts'
import { EthernetStatus } from '../../src/os/network/resources/ethernet.ts'
import { eventually, kernelOf, Namespaces, program, running, spawnIn, workerConfig } from './lab/namespaces.ts'

const ethtool = program('ethtool')
const story = test.skipIf(!ethtool)
if (!ethtool) console.log('skipped: needs ethtool: bun tests/network/prepare.ts installs it')

let spaces: Namespaces
let node: Network
let path: string
let machine: ReturnType<typeof running>

beforeEach(() => {
  spaces = new Namespaces()
  path = spaces.make('node')
  spaces.make('peer')
  node = spaces.network(path)
  node.addVeth({ name: 'eth0', up: true, peer: { name: 'peer0' }, peerNetns: `${spaces.folder}/peer` })
  const kernel = { ...kernelOf(path), ethtool: { openEthernet: () => openEthernet({ netns: path }) } } as unknown as ReturnType<
    typeof kernelOf
  >
  machine = running(observeLinks(kernel), configEthernet, applyEthernet(kernel), observeEthernet(kernel))
})
afterEach(() => {
  machine.stop()
  spaces.close()
})

const say = (...documents: string[]) => machine.store.put(MachineConfig, 'v1alpha1', workerConfig(...documents))

/** The features of the interface as ethtool(8) reports them. */
async function judged(...what: string[]): Promise<string> {
  const judge = spawnIn(path, [ethtool!, ...what])
  const text = await new Response(judge.stdout).text()
  expect(await judge.exited).toBe(0)
  return text
}

story('features are set as configured, and again after a manual change', async () => {
  say('kind: EthernetConfig\nname: eth0\nfeatures: {tx-tcp-segmentation: false, tx-udp-segmentation: false}\n')
  await eventually(async () => /tx-tcp-segmentation: off/.test(await judged('-k', 'eth0')), 'the judge sees it')
  await eventually(async () => /tx-udp-segmentation: off/.test(await judged('-k', 'eth0')), 'the judge sees the other')
  await eventually(() => machine.store.get(EthernetStatus, 'eth0')?.spec.features?.['tx-tcp-segmentation'] === 'off', 'its status')
  await judged('-K', 'eth0', 'tx-tcp-segmentation', 'on')
  await eventually(
    () => machine.entries.filter(({ message }) => message === 'changing ethernet settings').length >= 2,
    'it is changed again',
  )
  await eventually(async () => /tx-tcp-segmentation: off/.test(await judged('-k', 'eth0')), 'the judge sees it again')
})

story('the status agrees with ethtool on every feature', async () => {
  const status = await eventually(() => machine.store.get(EthernetStatus, 'eth0')?.spec, 'a status')
  const lines = (await judged('-k', 'eth0')).matchAll(/^\t?([a-z0-9_-]+): (.*)$/gm)
  const features = Object.fromEntries([...lines].map(([, name, state]) => [name!, state!.trim()]))
  for (const [name, state] of Object.entries(status.features ?? {}))
    if (features[name] !== undefined) expect(`${name} ${state}`).toBe(`${name} ${features[name]}`)
  expect(Object.keys(status.features ?? {}).length).toBeGreaterThan(30)
  expect(status).toMatchObject({ linkState: false, port: 'TwistedPair', duplex: 'Full', speedMbit: 10_000 })
})

story('an unsupported setting is logged once, and the others are applied', async () => {
  say(
    'kind: EthernetConfig\nname: eth0\nfeatures: {tx-tcp-segmentation: false, loopback: true, nonsense: true}\nrings: {rx: 512}\nwakeOnLan: [magic]\n',
  )
  const failure = await eventually(
    () => machine.entries.find(({ message }) => message === 'apply ethernet settings failed'),
    'the failure is logged',
  )
  expect(String(failure.fields.error)).toContain('"nonsense" is not known')
  expect(String(failure.fields.error)).toContain('"loopback" is fixed off')
  expect(String(failure.fields.error)).toContain('wake on LAN')
  await eventually(async () => /tx-tcp-segmentation: off/.test(await judged('-k', 'eth0')), 'the rest')
})
