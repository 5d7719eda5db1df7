import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import type { Elect } from '../../../../src/os/area.ts'
import { declared } from '../../../../src/os/config/declared.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { configVips } from '../../../../src/os/network/controllers/address/vip.ts'
import { vipOperator } from '../../../../src/os/network/operators/vip.ts'
import { OperatorSpec } from '../../../../src/os/network/resources/operator-spec.ts'
import { sharedAddresses } from '../../../../src/os/network/shared-addresses.ts'
import { operationOf } from './operation.ts'

test('the address is assigned and announced while elected, and removed before the election is lost', async () => {
  const recorded: (string | undefined)[] = []
  const announced: string[] = []
  const stop = new AbortController()
  const elected = Promise.withResolvers<AbortController>()
  let tries = 0
  const elect: Elect = async (_name, act) => {
    if (++tries === 1) throw new Error('etcd is not there yet')
    const holding = new AbortController()
    elected.resolve(holding)
    await act(holding.signal)
  }
  const run = vipOperator(
    { announce: (_link, ip) => void announced.push(ip) },
    elect,
    () => undefined,
  )(
    operationOf({
      spec: { operator: 'vip', linkName: 'eth0', requireUp: true, vip: { ip: '10.5.0.50', gratuitousARP: true }, layer: 'configuration' },
      signal: stop.signal,
      report: (findings) => void recorded.push(findings?.addresses[0]?.address),
    }),
  )
  const holding = await elected.promise
  while (announced.length < 3) await Promise.resolve()
  expect(recorded).toEqual([undefined, '10.5.0.50/32'])
  stop.abort()
  holding.abort()
  await run
  expect(recorded).toEqual([undefined, '10.5.0.50/32', undefined])
  expect(announced).toEqual(['10.5.0.50', '10.5.0.50', '10.5.0.50'])
})

test('both forms declare a shared address, which identifies no node', async () => {
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(configVips())
  os.start()
  store.put(
    MachineConfig,
    'v1alpha1',
    `version: v1alpha1
machine:
  type: controlplane
cluster: {}
---
apiVersion: v1alpha1
kind: Layer2VIPConfig
name: 10.5.0.50
link: eth0
---
apiVersion: v1alpha1
kind: HCloudVIPConfig
name: 10.5.0.51
link: eth0
apiToken: secret
`,
  )
  await os.settled()
  expect(store.list(OperatorSpec, { namespace: 'network-config' }).map(({ metadata, spec }) => [metadata.id, spec.vip?.ip])).toEqual([
    ['configuration/vip/eth0/10.5.0.50', '10.5.0.50'],
    ['configuration/vip/eth0/10.5.0.51', '10.5.0.51'],
  ])
  const config = store.put(
    MachineConfig,
    'v1alpha1',
    `machine:
  network:
    interfaces:
      - interface: eth0
        vip: {ip: fd00::9}
        vlans: [{vlanId: 7, vip: {ip: 10.1.1.1}}]
---
apiVersion: v1alpha1
kind: Layer2VIPConfig
name: 10.5.0.50
link: eth0
`,
  )
  expect(sharedAddresses(declared(config))).toEqual(['fd00::9/128', '10.1.1.1/32', '10.5.0.50/32'])
})
