import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Store } from '../../../src/cosi/store.ts'
import { bootNetwork } from '../../../src/os/network/boot-parameters.ts'
import { LinkStatus } from '../../../src/os/network/resources/link.ts'
import { parseCommandLine } from '../../../src/wire/command-line.ts'
import { linkStatus } from './link-status.ts'

const store = new Store()
for (const [index, [name, type]] of [
  ['lo', 'loopback'],
  ['eth1', 'ether'],
  ['eth0', 'ether'],
].entries())
  store.put(LinkStatus, name!, linkStatus(index, { type: type! }))
const read = (text: string) => {
  const boot = bootNetwork(parseCommandLine(text))
  return { ...boot, found: boot.links(store.list(LinkStatus)) }
}

test('all forms of ip=', () => {
  expect(read('ip=dhcp').found).toMatchObject([{ name: 'eth0', dhcp4: { routeMetric: 1024 } }])
  expect(read('ip=eth1:dhcp ip=off').found).toMatchObject([{ name: 'eth1', dhcp4: {} }])
  const whole = read('ip=172.20.0.2::172.20.0.1:255.255.255.0:node-1:eth1::10.5.0.1:10.5.0.2:10.5.0.3')
  expect(whole.found).toMatchObject([
    { name: 'eth1', addresses: [{ address: '172.20.0.2/24' }], routes: [{ destination: '', gateway: '172.20.0.1' }] },
  ])
  expect(whole).toMatchObject({ hostname: 'node-1', nameServers: ['10.5.0.1', '10.5.0.2'], timeServers: ['10.5.0.3'] })
  expect(whole.found[0]?.dhcp4).toBeUndefined()
  expect(read('ip=[2001:db8::2]::[2001:DB8::1]:64::eth1').found).toMatchObject([
    { addresses: [{ address: '2001:db8::2/64' }], routes: [{ gateway: '2001:db8::1' }] },
  ])
  expect(read('ip=10.0.0.2').found).toMatchObject([{ name: 'eth0', addresses: [{ address: '10.0.0.2/32' }] }])
  expect(read('ip=:::::eth1:dhcp').found).toMatchObject([{ name: 'eth1', dhcp4: {} }])
})

test('a host name that is none is left out, and the address beside it is kept', () => {
  expect(read('ip=10.0.0.2:::24:.b talos.hostname=.c')).toMatchObject({
    complaints: ['kernel parameter "ip": the host name: the first label of a name has 1 to 63 characters'],
    found: [{ addresses: [{ address: '10.0.0.2/24' }] }],
  })
  expect(read('ip=10.0.0.2:::24:.b talos.hostname=.c').hostname).toBeUndefined()
  expect(read('ip=10.0.0.2:::24:a talos.hostname=.c').hostname).toBe('a')
})

test('hostname, name and time servers from separate parameters', () => {
  expect(read('ip=::::from-ip talos.hostname=node-2 nameserver=10.0.0.9 talos.network.interface.ignore=eth1')).toMatchObject({
    hostname: 'node-2',
    nameServers: ['10.0.0.9'],
    ignored: new Set(['eth1']),
  })
})

test('bond=, vlan= and bridge=', () => {
  expect(
    read('bond=bond1:eth3,eth4:mode=802.3ad,xmit_hash_policy=layer2+3,arp_ip_target=10.0.0.1;10.0.0.2,use_carrier=1:1450 bond=other').found,
  ).toMatchObject([
    {
      name: 'bond1',
      kind: 'bond',
      mtu: 1450,
      members: ['eth3', 'eth4'],
      bond: { mode: '802.3ad', xmitHashPolicy: 'layer2+3', arpIpTargets: ['10.0.0.1', '10.0.0.2'], useCarrier: true },
    },
  ])
  expect(read('bond=bond0').found).toMatchObject([{ members: ['eth0', 'eth1'], bond: { mode: 'balance-rr' } }])
  expect(read('vlan=vlan5:eth1 ip=10.0.0.2::::::').found).toMatchObject([
    { name: 'eth1.5', kind: 'vlan', vlan: { vlanID: 5, parent: 'eth1' } },
    {},
  ])
  expect(read('vlan=x.7:eth0 ip=10.0.0.2:::24::x.7').found.map(({ name }) => name)).toEqual(['eth0.7', 'eth0.7'])
  expect(read('bridge=br0:eth0,eth1').found).toMatchObject([{ name: 'br0', kind: 'bridge', members: ['eth0', 'eth1'] }])
})

test('invalid parameters are reported and skipped', () => {
  expect(read('bond=bond0:eth0:colour=red ip=10.0.0.300 vlan=eth0:eth1 ip=10.0.0.1:::255.0.255.0 ip=dhcp')).toMatchObject({
    complaints: [
      'kernel parameter "bond=bond0:eth0:colour=red": "colour=red" is not a bond option',
      'kernel parameter "vlan=eth0:eth1": the VLAN needs an ID from 1 to 4095',
      'kernel parameter "ip=10.0.0.300": expected "dhcp", "LINK:dhcp" or an address',
      'kernel parameter "ip=10.0.0.1:::255.0.255.0": "255.0.255.0" is not a netmask',
    ],
    found: [{ name: 'eth0' }],
  })
})

test('any command line is parsed', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('ip', 'bond', 'vlan', 'bridge', 'nameserver'), fc.string())), (words) => {
      read(words.map(([name, value]) => `${name}=${value}`).join(' '))
    }),
  )
})
