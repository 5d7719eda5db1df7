import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { publishAddresses } from '../../../../src/os/network/controllers/address/address-event.ts'
import { HostnameStatus } from '../../../../src/os/network/resources/hostname.ts'
import { NodeAddress } from '../../../../src/os/network/resources/node-address.ts'
import { Events } from '../../../../src/os/runtime/events.ts'

test('hostname and addresses are published once known and on each change, without repetition', async () => {
  const events = new Events()
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(publishAddresses({ events }))
  runtime.start()
  const last = () => events.last('machine.AddressEvent')
  const put = async (...addresses: string[]) => {
    store.put(NodeAddress, 'current-no-k8s', { addresses, sortAlgorithm: 'v1' })
    await runtime.settled()
  }
  await runtime.settled()
  expect(last()).toBeUndefined()
  await put('10.5.0.2/24', 'fd00::2/64')
  expect(last()?.payload).toEqual({ hostname: '', addresses: ['10.5.0.2', 'fd00::2'] })
  store.put(HostnameStatus, 'hostname', { hostname: 'node-a', domainname: 'example.org' })
  await runtime.settled()
  const first = last()
  expect(first?.payload).toEqual({ hostname: 'node-a', addresses: ['10.5.0.2', 'fd00::2'] })
  store.put(HostnameStatus, 'hostname', { hostname: 'node-a', domainname: 'example.net' })
  await put('10.5.0.2/24', 'fd00::2/64')
  expect(last()).toBe(first!)
  await put('10.5.0.2/24')
  expect(last()?.payload).toEqual({ hostname: 'node-a', addresses: ['10.5.0.2'] })
  await runtime.stop()
})
