import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { configAddressFilter } from '../../../../src/os/k8s/controllers/node/address-filter.ts'
import { configAddressOrder, observeNodeAddresses } from '../../../../src/os/network/controllers/address/node-address.ts'
import { AddressStatus } from '../../../../src/os/network/resources/address.ts'
import { LinkStatus } from '../../../../src/os/network/resources/link.ts'
import { NodeAddress } from '../../../../src/os/network/resources/node-address.ts'
import { linkStatus } from '../link-status.ts'

const address = (text: string, linkName: string, linkIndex: number, scope = 'global') => ({
  address: text,
  linkIndex,
  linkName,
  family: text.includes(':') ? 'inet6' : 'inet4',
  scope,
  flags: 'permanent',
  priority: 0,
})

function node() {
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(configAddressOrder, observeNodeAddresses, configAddressFilter)
  os.start()
  store.put(LinkStatus, 'eth0', linkStatus(2))
  store.put(LinkStatus, 'cni0', linkStatus(3))
  store.put(AddressStatus, 'eth0/10.0.0.5/24', address('10.0.0.5/24', 'eth0', 2))
  store.put(AddressStatus, 'eth0/fe80::1/64', address('fe80::1/64', 'eth0', 2, 'link'))
  store.put(AddressStatus, 'cni0/10.244.0.1/24', address('10.244.0.1/24', 'cni0', 3))
  const set = (id: string) => store.get(NodeAddress, id)?.spec.addresses
  return { store, os, set }
}

test('pod addresses are not node addresses', async () => {
  const { store, os, set } = node()
  store.put(MachineConfig, 'v1alpha1', 'version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n')
  await os.settled()
  expect(set('current')).toEqual(['10.0.0.5/24', '10.244.0.1/24'])
  expect(set('current-no-k8s')).toEqual(['10.0.0.5/24'])
  expect(set('routed-only-k8s')).toEqual(['10.244.0.1/24'])
})

test('the default address is stable while it exists, accumulated ones are kept forever', async () => {
  const { store, os, set } = node()
  await os.settled()
  store.put(LinkStatus, 'eth1', linkStatus(1))
  store.put(AddressStatus, 'eth1/10.0.0.1/24', address('10.0.0.1/24', 'eth1', 1))
  await os.settled()
  expect(set('default')).toEqual(['10.0.0.5/24'])
  store.destroy(AddressStatus, 'eth0/10.0.0.5/24')
  await os.settled()
  expect(set('default')).toEqual(['10.0.0.1/24'])
  expect(set('accumulative')).toContain('10.0.0.5/24')
})
