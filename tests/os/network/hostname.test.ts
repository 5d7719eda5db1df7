import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { applyHostname, configHostname, mergeHostname } from '../../../src/os/network/controllers/hostname.ts'
import { applyPlatformConfig } from '../../../src/os/network/controllers/platform.ts'
import { HostnameSpec, HostnameStatus } from '../../../src/os/network/resources/hostname.ts'

function machine(given = '') {
  const recorded: string[] = []
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  const uts = { sethostname: (name: string) => void recorded.push(name), setdomainname: () => {} }
  os.register(configHostname(), mergeHostname, applyHostname({ uts }))
  os.register(applyPlatformConfig('container', { hostname: given, nameservers: [], searchDomains: [] }))
  os.start()
  return { store, os, recorded }
}

const config = (network: string) => `version: v1alpha1\nmachine:\n  type: worker\n  network:\n    ${network}\ncluster: {}\n`

test('the configured hostname overrides that of DHCP, which returns when it is removed', async () => {
  const { store, os, recorded } = machine()
  store.put(HostnameSpec, 'operator/hostname', { hostname: 'eth-0', domainname: '', layer: 'operator' }, { namespace: 'network-config' })
  store.put(MachineConfig, 'v1alpha1', config('hostname: bar.com'))
  await os.settled()
  expect(store.get(HostnameStatus, 'hostname')?.spec).toEqual({ hostname: 'bar', domainname: 'com' })
  store.destroy(MachineConfig, 'v1alpha1')
  await os.settled()
  expect(recorded.at(-1)).toBe('eth-0')
  expect(recorded.filter((name) => name === 'bar')).toEqual(['bar'])
})

test('a node without a configured hostname derives a stable one from its identity', async () => {
  const names = await Promise.all(
    [1, 2].map(async () => {
      const { store, os } = machine()
      store.put(Identity, 'local', { nodeId: 'ektZmoeQTrQ1gK1Kmge3p8emd231HD6ewavuVIbKrqfH' })
      await os.settled()
      return store.get(HostnameStatus, 'hostname')?.spec.hostname
    }),
  )
  expect(names[0]).toMatch(/^talos-[0-9a-z]{3}-[0-9a-z]{3}$/)
  expect(names[0]).toBe(names[1]!)
})

test('a container keeps its initial hostname', async () => {
  const { store, os } = machine('node-1')
  store.put(Identity, 'local', { nodeId: 'x' })
  await os.settled()
  expect(store.get(HostnameStatus, 'hostname')?.spec.hostname).toBe('node-1')
})
