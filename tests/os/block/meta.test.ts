import { describe, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { metaMethods } from '../../../src/os/block/api/meta.ts'
import { parseGivenMeta } from '../../../src/os/block/meta/given.ts'
import { Meta, metaTags, upgradeTags } from '../../../src/os/block/meta/meta.ts'
import { readMetaPartition, writeMetaPartition } from '../../../src/os/block/meta/partition.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { observeMachineToken } from '../../../src/os/runtime/controllers/unique-machine-token.ts'
import { MetaKey, MetaLoad } from '../../../src/os/runtime/resources/meta.ts'
import { UniqueMachineToken } from '../../../src/os/runtime/resources/unique-machine-token.ts'
import { metaParameter } from '../../../src/programs/factory/meta-parameter.ts'
import { writeAdv } from '../../../src/wire/meta.ts'
import { type MemoryDisk, memoryDisk } from '../../support/memory-disk.ts'

const mebibyte = 1 << 20

function machine(disk: MemoryDisk = memoryDisk(mebibyte)) {
  const store = new Store()
  const openDevice = async (path: string) => ({ ...disk, path, sectorSize: 512, close: async () => {} })
  const meta = new Meta({ store, log: silent, kernel: { block: { openDevice } } })
  const keys = () => Object.fromEntries(store.list(MetaKey).map(({ metadata, spec }) => [metadata.id, spec.value]))
  return { store, meta, disk, keys }
}

const kept = async (disk: MemoryDisk) =>
  Object.fromEntries([...(await readMetaPartition(disk)).values].map(([tag, value]) => [tag, Buffer.from(value).toString()]))

describe('META', () => {
  test('is in memory until the partition exists, then written to it', async () => {
    const { meta, disk, keys } = machine()
    meta.set(0x0a, 'addresses: []')
    expect(await meta.flush()).toBe(false)
    expect(disk.writes).toEqual([])
    await meta.use('/dev/vda3')
    expect(await kept(disk)).toEqual({ 10: 'addresses: []' })
    meta.set(0x0b, 'code')
    expect(meta.delete(0x0a)).toBe(true)
    expect(await meta.flush()).toBe(true)
    expect(await kept(disk)).toEqual({ 11: 'code' })
    expect(keys()).toEqual({ '0x0b': 'code' })
  })

  test('takes what the boot medium gives while there is no partition, and none of the upgrade state', async () => {
    const given = parseGivenMeta(
      `quiet ${metaParameter([
        { key: 10, value: 'a=b' },
        { key: metaTags.stagedImage, value: 'x' },
      ])}`,
    )
    const { store, meta, disk, keys } = machine()
    store.put(VolumeStatus, 'META', { type: 'partition', phase: 'missing' })
    await meta.reload(undefined, given)
    expect(keys()).toEqual({ '0x0a': 'a=b' })
    await meta.use('/dev/vda3')
    expect(await kept(disk)).toEqual({ 10: 'a=b' })
    const installed = machine(disk)
    installed.store.put(VolumeStatus, 'META', { type: 'partition', phase: 'ready', location: '/dev/vda3' })
    await installed.meta.reload(undefined, new Map([[10, 'other']]))
    expect(installed.keys()).toEqual({ '0x0a': 'a=b' })
  })

  test.each([
    ['quiet', []],
    [metaParameter([{ key: 10, value: 'x'.repeat(5000) }]), [[10, 'x'.repeat(5000)]]],
    ['talos.environment=INSTALLER_META_BASE64=', []],
  ])('is read of %j', (commandLine, values) => {
    expect([...parseGivenMeta(commandLine)]).toEqual(values as never)
  })

  test.each([
    ['!', 'no base64'],
    [Buffer.from('10=a').toString('base64'), '"10=a" is not "0xTAG=value"'],
    [Buffer.from([0x1f, 0x8b, 0]).toString('base64'), 'not compressed with gzip'],
  ])('is not read of %j', (encoded, reason) => {
    expect(() => parseGivenMeta(`talos.environment=INSTALLER_META_BASE64=${encoded}`)).toThrow(reason)
  })

  test('values of the partition are read; values set earlier take precedence', async () => {
    const disk = memoryDisk(mebibyte)
    const text = (value: string) => new Uint8Array(Buffer.from(value))
    await writeMetaPartition(disk, {
      values: new Map([
        [12, text('old')],
        [13, text('stays')],
        [14, text('goes')],
      ]),
      legacy: new Map(),
    })
    const { meta, keys } = machine(disk)
    meta.set(12, 'new')
    meta.set(14, 'x')
    meta.delete(14)
    await meta.use('/dev/vda3')
    expect(keys()).toEqual({ '0x0c': 'new', '0x0d': 'stays' })
    expect(await kept(disk)).toEqual({ 12: 'new', 13: 'stays' })
  })

  test('a legacy value is used if there is no new one, and does not return after deletion', async () => {
    const disk = memoryDisk(mebibyte)
    const legacy = writeAdv(
      new Map([
        [6, new Uint8Array(Buffer.from('A'))],
        [7, new Uint8Array(Buffer.from('image'))],
      ]),
    )
    await disk.write(mebibyte - 1024, legacy)
    await disk.write(mebibyte - 512, legacy)
    const { meta } = machine(disk)
    await meta.use('/dev/vda3')
    expect([meta.get(6), meta.get(7)]).toEqual(['A', 'image'])
    meta.delete(6)
    await meta.flush()
    const again = machine(disk).meta
    await again.use('/dev/vda3')
    expect([again.get(6), again.get(7)]).toEqual([undefined, 'image'])
  })

  test('a damaged second copy is restored before the first is written', async () => {
    const { meta, disk } = machine()
    await meta.use('/dev/vda3')
    meta.set(12, 'one')
    await meta.flush()
    await disk.write(300_000, new Uint8Array([1]))
    disk.writes.length = 0
    meta.set(12, 'two')
    await meta.flush()
    expect(disk.writes.map((call) => (call === 'flush' ? call : call.offset))).toEqual([262144, 'flush', 0, 'flush', 262144, 'flush'])
  })

  test('reading waits until the state of the partition is known', async () => {
    const { meta, store } = machine()
    const status = { type: 'partition' as const, phase: 'waiting' as const }
    store.put(VolumeStatus, 'META', status)
    const loaded = meta.reload()
    expect(store.get(MetaLoad, 'meta-loaded')).toBeUndefined()
    store.put(VolumeStatus, 'META', { ...status, phase: 'missing' })
    await loaded
    expect(store.get(MetaLoad, 'meta-loaded')?.spec).toEqual({ done: true })
  })
})

describe('over the API', () => {
  const call = (meta: Meta, name: string, request: object) => {
    const method = metaMethods(meta).find(({ path }) => path === `machine.MachineService/${name}`)!
    return (method as unknown as { handle(request: object): Promise<unknown> }).handle(request)
  }

  test('keys are written and deleted; invalid and missing ones are rejected', async () => {
    const { meta, keys } = machine()
    await call(meta, 'MetaWrite', { key: 12, value: Buffer.from('hello') })
    expect(keys()).toEqual({ '0x0c': 'hello' })
    await call(meta, 'MetaDelete', { key: 12 })
    await expect(call(meta, 'MetaDelete', { key: 12 })).rejects.toThrow('no such key 12')
    await expect(call(meta, 'MetaWrite', { key: 256, value: Buffer.from('x') })).rejects.toThrow('from 1 to 255')
  })

  test('the passphrases of STATE are not shown, and the way it is opened is protected', async () => {
    const store = new Store()
    const meta = new Meta({ kernel: { block: { openDevice: () => Promise.reject(new Error('no disk')) } }, store, log: silent })
    meta.set(metaTags.stateEncryption, '{"EncryptionKeys":[{"KeySlot":0,"KeyStatic":{"KeyData":"se\\"cret"}}]}')
    expect(store.get(MetaKey, '0x09')?.spec.value).toBe('{"EncryptionKeys":[{"KeySlot":0,"KeyStatic":{"KeyData":"**REDACTED**"}}]}')
    expect(meta.get(metaTags.stateEncryption)).toContain('se\\"cret')
    const refusal = { status: 'PermissionDenied', message: expect.stringContaining('is how STATE is opened') }
    await expect(call(meta, 'MetaDelete', { key: metaTags.stateEncryption })).rejects.toMatchObject(refusal)
  })

  test.each([...upgradeTags])('upgrade state is protected: key %d', async (key) => {
    const { meta, keys } = machine()
    meta.set(key, '{"slot":"b"}')
    const before = keys()
    const refusal = {
      status: 'PermissionDenied',
      message: expect.stringContaining('holds the upgrade state, which only the system writes'),
    }
    await expect(call(meta, 'MetaWrite', { key, value: Buffer.from('') })).rejects.toMatchObject(refusal)
    await expect(call(meta, 'MetaDelete', { key })).rejects.toMatchObject(refusal)
    expect(keys()).toEqual(before)
  })

  test('a value that does not fit is rejected and the old one kept', async () => {
    const { meta } = machine()
    await meta.use('/dev/vda3')
    await call(meta, 'MetaWrite', { key: 12, value: Buffer.from('old') })
    await expect(call(meta, 'MetaWrite', { key: 12, value: Buffer.alloc(262_144, 'x') })).rejects.toThrow('does not fit')
    expect(meta.get(12)).toBe('old')
    expect(await meta.flush()).toBe(true)
  })
})

test('with an unreadable partition META stays in memory, and the boot continues', async () => {
  const store = new Store()
  const openDevice = () => Promise.reject(new Error('read "/dev/vda3": EIO'))
  const meta = new Meta({ store, log: silent, kernel: { block: { openDevice } } })
  store.put(VolumeStatus, 'META', { type: 'partition', phase: 'ready', location: '/dev/vda3' })
  await meta.reload()
  expect(store.get(MetaLoad, 'meta-loaded')?.spec.done).toBe(true)
  meta.set(0x0a, 'x')
  expect(await meta.flush()).toBe(false)
})

test('the unique machine token comes from META as soon as META is known', async () => {
  const { meta, store } = machine()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(observeMachineToken({ mode: 'metal' }))
  runtime.start()
  await runtime.settled()
  expect(store.get(UniqueMachineToken, 'unique-machine-token')).toBeUndefined()
  meta.set(metaTags.uniqueToken, 'token')
  store.put(VolumeStatus, 'META', { type: 'partition', phase: 'missing' })
  await meta.reload()
  await runtime.settled()
  expect(store.get(UniqueMachineToken, 'unique-machine-token')?.spec).toEqual({ token: 'token' })
  // The one that the management server wrote precedes that of the configuration.
  store.put(MachineConfig, 'v1alpha1', 'apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: https://a\nuniqueToken: configured\n')
  await runtime.settled()
  expect(store.get(UniqueMachineToken, 'unique-machine-token')?.spec).toEqual({ token: 'token' })
  meta.delete(metaTags.uniqueToken)
  await runtime.settled()
  expect(store.get(UniqueMachineToken, 'unique-machine-token')?.spec).toEqual({ token: 'configured' })
  runtime.stop()
})
