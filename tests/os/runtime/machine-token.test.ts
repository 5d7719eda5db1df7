import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { observeMachineToken } from '../../../src/os/runtime/controllers/unique-machine-token.ts'
import { UniqueMachineToken } from '../../../src/os/runtime/resources/unique-machine-token.ts'

test('a container, which has no META, has the token of its configuration at once', async () => {
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(observeMachineToken({ mode: 'container' }))
  os.start()
  await os.settled()
  expect(store.get(UniqueMachineToken, 'unique-machine-token')?.spec).toEqual({ token: '' })
  store.put(MachineConfig, 'v1alpha1', 'apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: https://a\nuniqueToken: configured\n')
  await os.settled()
  expect(store.get(UniqueMachineToken, 'unique-machine-token')?.spec).toEqual({ token: 'configured' })
  await os.stop()
})
