import { describe, expect, test } from 'bun:test'
import type { Ethernet } from '../../../../src/linux/net/ethtool.ts'
import { changeOf, statusOf } from '../../../../src/os/network/link/ethernet.ts'

const nic: Ethernet = {
  linkUp: true,
  port: 0,
  speed: 10_000,
  duplex: 1,
  ours: [
    { index: 5, name: '1000baseT/Full', on: true },
    { index: 12, name: '10000baseT/Full', on: false },
  ],
  peer: [],
  rings: { rxMax: 4096, txMax: 4096, rx: 256, tx: 256, txPush: false },
  channels: { combinedMax: 8, combined: 4 },
  wake: ['magic', 'arp'],
  features: {
    changeable: new Set(['rx-gro', 'tx-gso', 'rx-lro']),
    requested: new Set(['rx-gro', 'rx-lro']),
    active: new Set(['rx-gro', 'highdma']),
    fixed: new Set(['highdma']),
  },
  featureNames: ['rx-gro', 'highdma', 'tx-gso', 'rx-lro', 'loopback'],
}

test('the status agrees with ethtool', () => {
  expect(statusOf(nic)).toEqual({
    linkState: true,
    speedMbit: 10_000,
    port: 'TwistedPair',
    duplex: 'Full',
    ourModes: ['1000baseT/Full'],
    rings: { 'rx-max': 4096, 'tx-max': 4096, rx: 256, tx: 256, 'tx-push': false },
    features: {
      'rx-gro': 'on',
      highdma: 'on [fixed]',
      'tx-gso': 'off',
      'rx-lro': 'off [requested on]',
      loopback: 'off [fixed]',
    },
    channels: { 'combined-max': 8, combined: 4 },
    wakeOnLAN: ['magic'],
  })
})

test('a link without ethtool data has an empty status', () => {
  expect(statusOf({ ours: [], peer: [], featureNames: [] })).toEqual({ port: 'Other', duplex: 'Unknown' })
})

describe('changes of a network interface', () => {
  const recorded = (spec: Parameters<typeof changeOf>[0], present = nic) => {
    const problems: string[] = []
    return { change: changeOf(spec, present, problems), problems }
  }

  test('are limited to differences', () => {
    const { change, problems } = recorded({
      features: { 'rx-gro': false, 'tx-gso': false },
      rings: { rx: 512, tx: 256, 'tx-push': true },
      channels: { combined: 4 },
      wakeOnLan: ['phy'],
    })
    expect(problems).toEqual([])
    expect(change).toEqual({ features: { 'rx-gro': false }, rings: { rx: 512, txPush: true }, wake: ['phy'] })
  })

  test('are empty without differences', () => {
    expect(recorded({ features: { 'rx-gro': true, highdma: true }, rings: { rx: 256 }, wakeOnLan: ['arp', 'magic'] }).change).toEqual({})
  })

  test('list unsupported settings', () => {
    const { change, problems } = recorded(
      { features: { loopback: true, 'no-such': true }, rings: { rx: 1 }, wakeOnLan: ['magic'] },
      {
        ...nic,
        rings: undefined,
        wake: undefined,
      },
    )
    expect(change).toEqual({})
    expect(problems).toEqual([
      'rings: its driver has no such settings: leave them out',
      'feature "loopback" is fixed off: leave it out',
      'feature "no-such" is not known to this kernel: see its EthernetStatus for those that are',
      'wake on LAN: its driver cannot wake the machine: leave it out',
    ])
  })
})
