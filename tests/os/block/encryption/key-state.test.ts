/** Keys of an open volume that cannot be brought in line: whether the configuration changed them, or they could only not be checked. */
import { expect, test } from 'bun:test'
import { systemClock } from '../../../../src/cosi/clock.ts'
import type { Machine } from '../../../../src/os/area.ts'
import { EncryptedVolumes } from '../../../../src/os/block/encryption/encrypted-volumes.ts'
import type { EncryptionKey } from '../../../../src/os/block/encryption/passphrase.ts'
import { volume } from '../../../wire/luks2/volume.ts'

const uuid = '3e2a4d50-71c9-4a55-9d4e-0b0f6a1c2d3e'
const otherUUID = '9d2f6a1c-0b7e-4c35-8d1e-5a3b7c9d1e2f'
const nodeKey: EncryptionKey = { slot: 0, type: 'nodeID' }

/** A machine with one volume on /dev/vda1, whose key is that of the node. */
async function machine() {
  const { disk } = await volume(`${uuid}u-data`)
  const logged: string[] = []
  const note = (level: string) => (text: string) => void logged.push(`${level}: ${text}`)
  const kernel = {
    block: { openDevice: async (path: string) => ({ ...disk, path, sectorSize: 512, close: async () => {} }) },
    mapper: { deviceNumber: () => 1, createMapping: () => ({ device: '/dev/dm-0' }) },
    files: { mkdirAll() {}, symlink() {}, readTextIfThere: () => undefined },
  }
  const log = { info() {}, warn: note('warn'), error: note('error') }
  const volumes = new EncryptedVolumes({ kernel, log, clock: systemClock } as unknown as Machine, {})
  const provide = async (machineUUID: string, keys: EncryptionKey[] = [nodeKey]) => {
    const desired = { encryption: { provider: 'luks2', keys }, sources: { machineUUID }, sync: true }
    const { keyState, failedSyncs } = await volumes.provide('u-data', '/dev/vda1', desired)
    return { keyState, failed: failedSyncs.length, logged: logged.splice(0) }
  }
  return { provide }
}

test('keys that are in the header are current', async () => {
  const { provide } = await machine()
  expect(await provide(uuid)).toEqual({ keyState: 'current', failed: 0, logged: [] })
})

test('the same keys that nothing opens now are unchecked, not a change that failed', async () => {
  const { provide } = await machine()
  await provide(uuid)
  expect(await provide(otherUUID)).toEqual({ keyState: 'unchecked', failed: 1, logged: ['warn: encryption keys not checked'] })
  expect(await provide(uuid)).toEqual({ keyState: 'current', failed: 0, logged: [] })
})

test('other keys of the configuration that cannot be put into the header are outstanding until they are', async () => {
  const { provide } = await machine()
  await provide(uuid)
  const next: EncryptionKey = { slot: 1, type: 'nodeID' }
  const outstanding = { keyState: 'outstanding' as const, failed: 1, logged: ['error: encryption keys not changed'] }
  expect(await provide(otherUUID, [nodeKey, next])).toEqual(outstanding)
  expect(await provide('', [nodeKey, next])).toEqual(outstanding)
  expect(await provide(uuid, [nodeKey, next])).toEqual({ keyState: 'current', failed: 0, logged: [] })
})
