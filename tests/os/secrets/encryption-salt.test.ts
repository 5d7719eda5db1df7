import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { mountId, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { keepEncryptionSalt } from '../../../src/os/secrets/controllers/encryption-salt.ts'
import { EncryptionSalt } from '../../../src/os/secrets/resources/encryption-salt.ts'

const path = '/system/state/encryption-salt.yaml'

async function start(state: Map<string, string>) {
  const files = {
    readTextIfThere: (name: string) => state.get(name),
    writeAtomic: async (name: string, text: string) => void state.set(name, text),
  }
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(keepEncryptionSalt({ files: files as never }))
  runtime.start()
  await runtime.settled()
  return { store, runtime }
}

const mountState = (store: Store) =>
  store.put(VolumeMountStatus, mountId('STATE'), {
    volumeID: 'STATE',
    requester: 'test',
    target: '/system/state',
    readOnly: false,
    detached: false,
    disableAccessTime: false,
    secure: true,
  })

test('a salt is made when STATE is mounted, and kept there', async () => {
  const state = new Map<string, string>()
  const { store, runtime } = await start(state)
  expect(store.get(EncryptionSalt, 'salt')).toBeUndefined()
  mountState(store)
  await runtime.settled()
  const salt = store.get(EncryptionSalt, 'salt')?.spec.diskSalt
  expect(salt).toHaveLength(32)
  runtime.stop()
  const again = await start(state)
  mountState(again.store)
  await again.runtime.settled()
  expect(again.store.get(EncryptionSalt, 'salt')?.spec.diskSalt).toEqual(salt)
  again.runtime.stop()
})

test('a damaged salt is not replaced', async () => {
  const state = new Map([[path, 'diskSalt: [1, 2]\n']])
  const { store, runtime } = await start(state)
  mountState(store)
  await runtime.settled()
  expect(store.get(EncryptionSalt, 'salt')).toBeUndefined()
  expect(state.get(path)).toBe('diskSalt: [1, 2]\n')
  runtime.stop()
})
