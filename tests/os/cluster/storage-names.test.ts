import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { configInitiatorName, configNvmeHost } from '../../../src/os/cluster/controllers/storage-names.ts'
import { initiatorName, machineId, nvmeHostId, nvmeHostName } from '../../../src/os/cluster/machine-id.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { EtcFileSpec } from '../../../src/os/files/resources/etc-file.ts'

test.each([
  ['0123456789abcdef0123456789abcdef', '30313233-3435-3637-3839-616263646566'],
  ['ffffffffffffffff0000000000000000', '66666666-6666-6666-6666-666666666666'],
  ['a1b2c3d4e5f60718293a4b5c6d7e8f90', '61316232-6333-6434-6535-663630373138'],
])('the names of machine %s have the form of the field', (id, uuid) => {
  expect(initiatorName(id)).toBe(`iqn.2017-11.dev.talos:${id}`)
  expect(nvmeHostId(id)).toBe(uuid)
  expect(nvmeHostName(id)).toBe(`nqn.2017-11.dev.talos:uuid:${uuid}`)
})

test('their files follow the identity of the node', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(configInitiatorName)
  runtime.register(configNvmeHost)
  runtime.start()
  await runtime.settled()
  expect(store.list(EtcFileSpec)).toEqual([])
  store.put(Identity, 'local', { nodeId: 'one' })
  await runtime.settled()
  const id = machineId('one')
  const file = (contents: string) => ({ contents, mode: 0o600, selinux_label: '' })
  expect(Object.fromEntries(store.list(EtcFileSpec).map(({ metadata, spec }) => [metadata.id, spec]))).toEqual({
    'iscsi/initiatorname.iscsi': file(`InitiatorName=iqn.2017-11.dev.talos:${id}\n`),
    'nvme/hostid': file(nvmeHostId(id)),
    'nvme/hostnqn': file(`nqn.2017-11.dev.talos:uuid:${nvmeHostId(id)}`),
  })
  runtime.stop()
})
