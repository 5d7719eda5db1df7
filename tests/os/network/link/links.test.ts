import { describe, expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import type { SpecOf } from '../../../../src/cosi/resource.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import type { Link, LinkChange, NewLink } from '../../../../src/linux/net/rtnetlink.ts'
import { documentKinds } from '../../../../src/os/config/kinds.ts'
import { mergeLinks } from '../../../../src/os/network/controllers/link/link.ts'
import { linkSpecs } from '../../../../src/os/network/declared-specs.ts'
import type { NetworkInterface } from '../../../../src/os/network/documents/machine-network.ts'
import { canonicalDestination } from '../../../../src/os/network/link/canonical.ts'
import { declaredLinks } from '../../../../src/os/network/link/declared.ts'
import { linkNames, selectedLinks } from '../../../../src/os/network/link/names.ts'
import { LinkReconciler } from '../../../../src/os/network/link/reconciler.ts'
import { wireguardChange } from '../../../../src/os/network/link/wireguard.ts'
import { LinkSpec, LinkStatus } from '../../../../src/os/network/resources/link.ts'
import { linkStatus } from '../link-status.ts'

/** A fake kernel that records link changes. */
class Links {
  readonly calls: string[] = []
  readonly all: Link[] = []

  constructor(...names: string[]) {
    for (const name of names) this.#add({ name, kind: '' })
  }

  #add({ name, kind, data = {}, parent, hardwareAddress = '02:00:00:00:00:01' }: Partial<Link> & { name: string }): void {
    const link = { index: this.all.length + 1, name, kind: kind ?? '', data, parent, flags: 0x1000, mtu: 1500, hardwareAddress }
    this.all.push(link as Link)
  }

  links = () => this.all.map((link) => ({ ...link, data: { ...link.data } }))
  addLink = (link: NewLink) => {
    this.calls.push(`add ${link.name} ${link.kind} ${JSON.stringify(link.data ?? {})}${link.parent ? ` on ${link.parent}` : ''}`)
    this.#add(link as Link)
  }
  setLink = (which: string | number, { up, kind, data, ...change }: Omit<LinkChange, 'peer'>) => {
    const link = this.all.find(({ name }) => name === which)!
    this.calls.push(`set ${which} ${JSON.stringify({ up, data, ...change })}`)
    if (up !== undefined) link.flags = up ? link.flags | 1 : link.flags & ~1
    Object.assign(link, change, { data: { ...link.data, ...data } }, change.master === 0 ? { master: undefined } : {})
  }
  removeLink = (which: string | number) => {
    this.calls.push(`remove ${which}`)
    this.all.splice(
      this.all.findIndex(({ name }) => name === which),
      1,
    )
  }
}

const document = ({ kind, ...value }: { kind: string; [key: string]: unknown }) => ({ kind: documentKinds.get(kind)!, value })

function specsOf(documents: Parameters<typeof document>[0][], devices: NetworkInterface[] = []) {
  return [
    ...linkSpecs(
      declaredLinks(devices, documents.map(document), (name) => name),
      'configuration',
      (name) => ({ eth0: 1, eth1: 2 })[name],
    ).values(),
  ]
}

describe('virtual links', () => {
  const bond = { kind: 'BondConfig', name: 'bond0', links: ['eth0', 'eth1'], bondMode: '802.3ad', lacpRate: 'fast', miimon: 100 }
  const vlan = { kind: 'VLANConfig', name: 'bond0.5', vlanID: 5, parent: 'bond0', mtu: 1400 }

  test('are created in order: a bond, its members while they are down, the VLAN on it', () => {
    const kernel = new Links('eth0', 'eth1')
    kernel.setLink('eth0', { up: true })
    kernel.calls.length = 0
    new LinkReconciler().converge(kernel, specsOf([vlan, bond]), silent)
    expect(kernel.calls).toEqual([
      'add bond0 bond {"mode":4,"xmitHashPolicy":0,"lacpRate":1,"miimon":100,"adLacpActive":1}',
      'add bond0.5 vlan {"id":5,"protocol":33024} on 3',
      'set bond0.5 {"mtu":1400}',
      'set eth0 {"up":false}',
      'set eth0 {"master":3}',
      'set eth1 {"master":3}',
      'set bond0.5 {"up":true}',
      'set bond0 {"up":true}',
      'set eth0 {"up":true}',
      'set eth1 {"up":true}',
    ])
  })

  test('are changed minimally, and a second pass does nothing', () => {
    const kernel = new Links('eth0', 'eth1')
    const reconciler = new LinkReconciler()
    reconciler.converge(kernel, specsOf([bond]), silent)
    kernel.calls.length = 0
    reconciler.converge(kernel, specsOf([bond]), silent)
    expect(kernel.calls).toEqual([])
    reconciler.converge(kernel, specsOf([{ ...bond, miimon: 50 }]), silent)
    expect(kernel.calls).toEqual(['set bond0 {"data":{"miimon":50}}'])
    kernel.calls.length = 0
    reconciler.converge(kernel, specsOf([{ ...bond, miimon: 50, lacpRate: 'slow' }]), silent)
    expect(kernel.calls).toEqual(['set bond0 {"up":false}', 'set bond0 {"data":{"lacpRate":0}}', 'set bond0 {"up":true}'])
    kernel.calls.length = 0
    reconciler.converge(kernel, specsOf([{ ...bond, bondMode: 'active-backup', miimon: 50 }]), silent)
    expect(kernel.calls.slice(0, 4)).toEqual([
      'set bond0 {"up":false}',
      'set eth0 {"master":0}',
      'set eth1 {"master":0}',
      'set bond0 {"data":{"mode":1}}',
    ])
    expect(kernel.all.filter(({ master }) => master === 3).map(({ name }) => name)).toEqual(['eth0', 'eth1'])
  })

  test('are removed without a spec, but only those created here', () => {
    const kernel = new Links('eth0')
    const reconciler = new LinkReconciler()
    kernel.addLink({ name: 'cni0', kind: 'bridge' })
    reconciler.converge(
      kernel,
      specsOf([
        { kind: 'BridgeConfig', name: 'br0', links: ['eth0'] },
        { kind: 'DummyLinkConfig', name: 'd0' },
      ]),
      silent,
    )
    kernel.calls.length = 0
    reconciler.converge(kernel, specsOf([{ kind: 'BridgeConfig', name: 'br0' }]), silent)
    expect(kernel.calls).toEqual(['remove d0', 'set eth0 {"master":0}'])
    reconciler.converge(kernel, [], silent)
    expect(kernel.all.map(({ name }) => name)).toEqual(['eth0', 'cni0'])
  })

  test('do not replace a link of another kind', () => {
    const kernel = new Links('eth0')
    kernel.addLink({ name: 'br0', kind: 'vxlan' })
    expect(() => new LinkReconciler().converge(kernel, specsOf([{ kind: 'BridgeConfig', name: 'br0' }]), silent)).toThrow(
      'make link "br0": there is one of kind "vxlan" already: give yours of kind "bridge" another name',
    )
  })

  test('a changed VLAN ID recreates the VLAN', () => {
    const kernel = new Links('eth0')
    const reconciler = new LinkReconciler()
    reconciler.converge(kernel, specsOf([{ ...vlan, parent: 'eth0', name: 'v' }]), silent)
    kernel.calls.length = 0
    reconciler.converge(kernel, specsOf([{ ...vlan, parent: 'eth0', name: 'v', vlanID: 6 }]), silent)
    expect(kernel.calls.slice(0, 2)).toEqual(['remove v', 'add v vlan {"id":6,"protocol":33024} on 1'])
  })
})

test('selectors require every condition, aliases are names, and virtual links are not physical', () => {
  const store = new Store()
  store.put(LinkStatus, 'eth0', linkStatus(1, { driver: 'virtio_net', busPath: '0000:00:04.0' }))
  store.put(LinkStatus, 'eth1', linkStatus(2, { driver: 'e1000', alias: 'uplink' }))
  store.put(LinkStatus, 'bond0', linkStatus(3, { kind: 'bond', hardwareAddr: '02:00:00:00:00:02' }))
  const links = store.list(LinkStatus)
  expect(selectedLinks({ physical: true }, links)).toEqual(['eth0', 'eth1'])
  expect(selectedLinks({ hardwareAddr: '02:00:00:00:00:02' }, links)).toEqual(['eth1', 'bond0'])
  expect(selectedLinks({ hardwareAddr: '02:00:00:00:00:02', physical: true }, links)).toEqual(['eth1'])
  expect(selectedLinks({ busPath: '0000:00:*', driver: 'virtio*' }, links)).toEqual(['eth0'])
  expect(selectedLinks({}, links)).toEqual([])
  expect(linkNames(links)('uplink')).toBe('eth1')
  expect(linkNames(links)('eth7')).toBe('eth7')
})

test('fields of a link come from the strongest layer that sets them', async () => {
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(mergeLinks)
  os.start()
  const put = (layer: 'default' | 'operator' | 'configuration', more: Partial<SpecOf<typeof LinkSpec>>) =>
    store.put(
      LinkSpec,
      `${layer}/eth0`,
      { name: 'eth0', logical: false, up: true, mtu: 0, kind: '', type: 'ether', layer, ...more },
      { namespace: 'network-config' },
    )
  put('default', {})
  put('operator', { mtu: 1450 })
  put('configuration', { masterName: 'bond0', slaveIndex: 1 })
  await os.settled()
  expect(store.get(LinkSpec, 'eth0')?.spec).toMatchObject({ mtu: 1450, masterName: 'bond0', slaveIndex: 1, layer: 'configuration' })
  put('configuration', { mtu: 9000, up: false })
  await os.settled()
  expect(store.get(LinkSpec, 'eth0')?.spec).toMatchObject({ mtu: 9000, up: false })
})

test('the old form and the documents are equivalent', () => {
  const [old] = declaredLinks(
    [
      {
        interface: 'eth0',
        mtu: 1400,
        addresses: ['10.0.0.2/24', 'FD00::1'],
        routes: [{ network: '0.0.0.0/0', gateway: '10.0.0.1', metric: 5 }],
      },
    ],
    [],
    (name) => name,
  )
  const [today] = declaredLinks(
    [],
    [
      document({
        kind: 'LinkConfig',
        name: 'eth0',
        mtu: 1400,
        addresses: [{ address: '10.0.0.2/24' }, { address: 'fd00::1/128' }],
        routes: [{ gateway: '10.0.0.1', metric: 5 }],
      }),
    ],
    (name) => name,
  )
  expect(old).toEqual(today!)
  const [own, vlan] = declaredLinks([{ interface: 'eth0', vlans: [{ vlanId: 7, dhcp: true }] }], [], (name) => name)
  expect(own?.dhcp4).toBeUndefined()
  expect(vlan).toMatchObject({ name: 'eth0.7', vlan: { vlanID: 7, parent: 'eth0' }, dhcp4: { routeMetric: 1024 } })
  expect(canonicalDestination('10.1.2.3/12')).toBe('10.0.0.0/12')
  expect(canonicalDestination('::/0')).toBe('')
})

test('only differences of a WireGuard link are applied, and unknown peers are removed', () => {
  const key = (letter: string) => Buffer.alloc(32, letter).toString('base64')
  const peer = {
    publicKey: key('p'),
    presharedKey: '',
    endpoint: '10.0.0.1:51820',
    persistentKeepaliveInterval: '25s',
    allowedIPs: ['10.2.0.0/16'],
  }
  const settings = { privateKey: key('a'), listenPort: 51820, firewallMark: 0, peers: [peer] }
  const device = { index: 4, privateKey: key('a'), publicKey: '', listenPort: 51820, firewallMark: 0 }
  const present = {
    publicKey: key('p'),
    presharedKey: '',
    endpoint: '192.0.2.1:7',
    keepalive: 25,
    allowedIPs: ['10.2.0.0/16'],
    lastHandshake: 9,
  }
  const counters = { receivedBytes: 0, sentBytes: 0 }
  expect(wireguardChange(settings, { ...device, peers: [{ ...present, ...counters }] })).toBeUndefined()
  const clamped = Buffer.from(key('a'), 'base64')
  clamped[0]! &= 248
  expect(
    wireguardChange(settings, { ...device, privateKey: clamped.toString('base64'), peers: [{ ...present, ...counters }] }),
  ).toBeUndefined()
  expect(wireguardChange(settings, { ...device, listenPort: 1, peers: [{ ...present, ...counters, publicKey: key('o') }] })).toEqual({
    index: 4,
    listenPort: 51820,
    peers: [
      { publicKey: key('o'), remove: true },
      { publicKey: key('p'), presharedKey: '', keepalive: 25, allowedIPs: ['10.2.0.0/16'], endpoint: '10.0.0.1:51820' },
    ],
  })
})

test('a changed endpoint in the spec is applied to the WireGuard peer, which sends to it at once', () => {
  const publicKey = Buffer.alloc(32, 'p').toString('base64')
  const peer = { publicKey, presharedKey: '', endpoint: '10.0.0.2:51820', persistentKeepaliveInterval: '25s', allowedIPs: ['10.2.0.0/16'] }
  const settings = { listenPort: 51820, firewallMark: 0, peers: [peer] }
  const configured = new Map([[publicKey, '10.0.0.1:51820']])
  const whole = { publicKey, presharedKey: '', keepalive: 25, allowedIPs: ['10.2.0.0/16'], endpoint: '10.0.0.2:51820' }
  const changes = (endpoint: string, lastHandshake: number) => {
    const present = {
      publicKey,
      presharedKey: '',
      endpoint,
      keepalive: 25,
      allowedIPs: ['10.2.0.0/16'],
      receivedBytes: 0,
      sentBytes: 0,
      lastHandshake,
    }
    const device = { index: 4, privateKey: '', publicKey: '', listenPort: 51820, firewallMark: 0, peers: [present] }
    return wireguardChange(settings, device, { configured, now: 1000 })?.peers
  }
  // With a session, re-enabling the keepalive sends a packet at once; without one the peer is recreated.
  expect(changes('10.0.0.1:51820', 900)).toEqual([{ publicKey, keepalive: 0 }, whole])
  expect(changes('10.0.0.1:51820', 100)).toEqual([{ publicKey, remove: true }, whole])
  expect(changes('10.0.0.1:51820', 990)).toBeUndefined() // it was heard of this moment
  expect(changes('10.0.0.2:51820', 900)).toBeUndefined() // it went there by itself
})

test('an endpoint change postponed by a recent handshake is applied later', () => {
  const publicKey = Buffer.alloc(32, 'p').toString('base64')
  const link = { name: 'wg0', index: 4, kind: 'wireguard', flags: 1, mtu: 1420, hardwareAddress: '', data: {} }
  const peer = {
    publicKey,
    presharedKey: '',
    endpoint: '',
    keepalive: 25,
    allowedIPs: [],
    receivedBytes: 0,
    sentBytes: 0,
    lastHandshake: 0,
  }
  const configured: string[] = []
  const reconciler = new LinkReconciler({
    wireguardDevice: () => ({ index: 4, privateKey: '', publicKey: '', listenPort: 1, firewallMark: 0, peers: [peer] }),
    setWireguard: ({ peers = [] }: { peers?: { endpoint?: string }[] }) => {
      for (const { endpoint } of peers) {
        if (!endpoint) continue
        peer.endpoint = endpoint
        configured.push(endpoint)
      }
    },
  } as never)
  const converge = (endpoint: string) => {
    const peers = [{ publicKey, presharedKey: '', endpoint, persistentKeepaliveInterval: '25s', allowedIPs: [] }]
    const settings = { name: 'wg0', logical: true, up: true, mtu: 1420, kind: 'wireguard', type: 'nohdr', layer: 'operator' as const }
    return reconciler.converge(
      { links: () => [link] } as never,
      [{ ...settings, wireguard: { listenPort: 1, firewallMark: 0, peers } }],
      silent,
    )
  }
  expect([converge('10.0.0.1:1'), configured]).toEqual([false, ['10.0.0.1:1']])
  peer.lastHandshake = Date.now() / 1000
  expect([converge('10.0.0.2:1'), configured]).toEqual([true, ['10.0.0.1:1']])
  peer.lastHandshake -= 60
  expect([converge('10.0.0.2:1'), configured]).toEqual([false, ['10.0.0.1:1', '10.0.0.2:1']])
  expect([converge('10.0.0.2:1'), configured.length]).toEqual([false, 2])
  expect(reconciler.quietChanges).toBe(2)
})
