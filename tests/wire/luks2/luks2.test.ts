import { describe, expect, test } from 'bun:test'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { cryptTable } from '../../../src/wire/luks2/crypt-table.ts'
import { newVolume } from '../../../src/wire/luks2/format.ts'
import { type Header, readHeader, writeHeader } from '../../../src/wire/luks2/header.ts'
import { addSlot, KeySlotError, openSlot, removeSlot } from '../../../src/wire/luks2/key-slots.ts'
import { type Metadata, parseMetadata } from '../../../src/wire/luks2/metadata.ts'
import { merge, split } from '../../../src/wire/luks2/split.ts'
import { aesXts } from '../../../src/wire/luks2/xts.ts'
import { probe } from '../../../src/wire/probe/probe.ts'
import { viewOf } from '../../../src/wire/probe/view.ts'
import type { memoryDisk } from '../../support/memory-disk.ts'
import { apply, cheap, secret, volume, xts } from './volume.ts'

const hex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('hex')
const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'hex'))

describe('AES-XTS', () => {
  // IEEE 1619-2007, annex B, vectors 1, 2 and 4, each repeated to a sector of 512 bytes or its beginning.
  test('encrypts as the standard does', () => {
    const zero = aesXts('encrypt', new Uint8Array(32), new Uint8Array(512), 0)
    expect(hex(zero.subarray(0, 32))).toBe('917cf69ebd68b2ec9b9fe9a3eadda692cd43d2f59598ed858c02c2652fbf922e')
    const two = aesXts('encrypt', bytes(`${'11'.repeat(16)}${'22'.repeat(16)}`), new Uint8Array(512).fill(0x44), 0x3333333333)
    expect(hex(two.subarray(0, 32))).toBe('c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0')
    const key = bytes('2718281828459045235360287471352631415926535897932384626433832795')
    const four = aesXts(
      'encrypt',
      key,
      Uint8Array.from({ length: 512 }, (_, index) => index & 0xff),
      0,
    )
    expect(hex(four.subarray(0, 32))).toBe('27a7479befa1d476489f308cd4cfa6e2a96e4bbe3208ff25287dd3819616e89c')
  })

  test('decrypts what it encrypted, with both key sizes and over several sectors', () => {
    const plain = Uint8Array.from({ length: 2048 }, (_, index) => (index * 7) & 0xff)
    for (const size of [32, 64]) {
      const key = Uint8Array.from({ length: size }, (_, index) => index)
      const sealed = aesXts('encrypt', key, plain, 9)
      expect(hex(sealed.subarray(0, 512))).not.toBe(hex(sealed.subarray(512, 1024)))
      expect(hex(aesXts('decrypt', key, sealed, 9))).toBe(hex(plain))
      expect(hex(aesXts('decrypt', key, sealed.subarray(512), 10))).toBe(hex(plain.subarray(512)))
    }
  })

  test('rejects other keys and parts of sectors', () => {
    expect(() => aesXts('encrypt', new Uint8Array(48), new Uint8Array(512))).toThrow('a key of 48 bytes')
    expect(() => aesXts('encrypt', new Uint8Array(64), new Uint8Array(500))).toThrow('no whole sectors')
  })
})

test('a key is restored from all of its stripes, and from no fewer', () => {
  for (const [length, algorithm] of [
    [64, 'sha256'],
    [40, 'sha256'],
    [64, 'sha512'],
  ] as const) {
    const key = Uint8Array.from({ length }, (_, index) => index + 1)
    const spread = split(key, 4000, algorithm)
    expect(hex(merge(spread, length, 4000, algorithm))).toBe(hex(key))
    spread[12_345] = (spread[12_345] ?? 0) ^ 1
    expect(hex(merge(spread, length, 4000, algorithm))).not.toBe(hex(key))
  }
})

describe('a volume', () => {
  test('is opened by its passphrase only', async () => {
    const { disk, volumeKey } = await volume()
    const { metadata } = await readHeader(disk.read, disk.size)
    expect(hex(await openSlot(metadata, 0, secret('first'), disk.read))).toBe(hex(volumeKey)!)
    expect(await openSlot(metadata, 0, secret('second'), disk.read)).toBeUndefined()
    expect(await openSlot(metadata, 1, secret('first'), disk.read)).toBeUndefined()
  })

  test('is recognized by its signature and UUID', async () => {
    const { disk, header } = await volume()
    expect(probe(viewOf(disk.size, [{ offset: 0, bytes: await disk.read(0, 2 << 20) }]), 512)).toMatchObject({
      name: 'luks',
      uuid: header.uuid,
    })
  })

  test('takes further keys, and the last one is never removed', async () => {
    const { disk, volumeKey } = await volume()
    const token = { type: 'sideroKMS', keyslots: [], UserData: { sealedData: 'c2VhbGVk' } }
    const added = await addSlot(await readHeader(disk.read, disk.size), volumeKey, {
      slot: 1,
      passphrase: secret('second'),
      cost: cheap,
      token,
    })
    await apply(disk, added.steps)
    let header = await readHeader(disk.read, disk.size)
    expect([header.sequence, header.damaged]).toEqual([2n, undefined])
    expect(header.metadata.tokens).toEqual({ 1: token })
    for (const [slot, passphrase] of [
      [0, 'first'],
      [1, 'second'],
    ] as const)
      expect(hex(await openSlot(header.metadata, slot, secret(passphrase), disk.read))).toBe(hex(volumeKey)!)
    const area = Number(header.metadata.keyslots[0]?.area.offset)
    const sealed = hex(await disk.read(area, 4096))
    await apply(disk, removeSlot(header, 0).steps)
    header = await readHeader(disk.read, disk.size)
    expect(Object.keys(header.metadata.keyslots)).toEqual(['1'])
    expect(header.metadata.digests[0].keyslots).toEqual(['1'])
    expect(hex(await disk.read(area, 4096))).not.toBe(sealed)
    expect(hex(await openSlot(header.metadata, 1, secret('second'), disk.read))).toBe(hex(volumeKey)!)
    expect(() => removeSlot(header, 1)).toThrow(KeySlotError)
    expect(() => removeSlot(header, 0)).toThrow('key slot 0 is not in use')
  })

  test('keeps the key that was in a slot until it is removed', async () => {
    const { disk, volumeKey, header } = await volume()
    const replaced = await addSlot(header, volumeKey, { slot: 0, passphrase: secret('next'), cost: cheap })
    await apply(disk, replaced.steps)
    const { metadata } = await readHeader(disk.read, disk.size)
    expect(Object.keys(metadata.keyslots)).toEqual(['0', '31'])
    expect(hex(await openSlot(metadata, 0, secret('next'), disk.read))).toBe(hex(volumeKey)!)
    expect(hex(await openSlot(metadata, 31, secret('first'), disk.read))).toBe(hex(volumeKey)!)
  })

  test('has space for 32 keys, and refuses more', async () => {
    const made = await volume()
    let { header } = made
    for (let slot = 1; slot < 32; slot++)
      header = (await addSlot(header, made.volumeKey, { slot, passphrase: secret(`${slot}`), cost: cheap })).header
    expect(() => parseMetadata(JSON.stringify(header.metadata), header.size)).not.toThrow()
    expect(() => writeHeader(header)).not.toThrow()
    await expect(addSlot(header, made.volumeKey, { slot: 0, passphrase: secret('x'), cost: cheap })).rejects.toThrow(
      'all key slots are in use',
    )
    await expect(addSlot(header, made.volumeKey, { slot: 32, passphrase: secret('x'), cost: cheap })).rejects.toThrow('no key slot 32')
  })

  test('becomes a table of the kernel', async () => {
    const { header } = await newVolume({ ...xts, sectorSize: 4096 }, { slot: 0, passphrase: secret('x'), cost: cheap })
    const device = { number: '254:3', size: (32 << 20) + 1024 }
    expect(cryptTable(header, device, ':64:logon:k', ['no_read_workqueue'])).toEqual({
      sectors: (16 << 20) / 512,
      parameters: 'aes-xts-plain64 :64:logon:k 0 254:3 32768 2 no_read_workqueue sector_size:4096',
    })
    expect(cryptTable((await volume()).header, device, 'k')).toEqual({
      sectors: (16 << 20) / 512 + 2,
      parameters: 'aes-xts-plain64 k 0 254:3 32768',
    })
    expect(() => cryptTable(header, { ...device, size: 16 << 20 }, 'k')).toThrow(DecodeError)
  })
})

describe('a header', () => {
  const corrupt = async (disk: ReturnType<typeof memoryDisk>, offset: number) => {
    const [byte = 0] = await disk.read(offset, 1)
    await disk.write(offset, Uint8Array.of(byte ^ 1))
  }

  test('is read from the copy that is valid', async () => {
    for (const [at, damaged] of [
      [5000, 'first'],
      [0, 'first'],
      [8, 'first'],
      [16384 + 5000, 'second'],
    ] as const) {
      const { disk, header } = await volume()
      await corrupt(disk, at)
      expect(await readHeader(disk.read, disk.size)).toMatchObject({ uuid: header.uuid, damaged, metadata: header.metadata })
    }
    const { disk } = await volume()
    await corrupt(disk, 5000)
    await corrupt(disk, 16384 + 5000)
    await expect(readHeader(disk.read, disk.size)).rejects.toThrow('its checksum is wrong')
  })

  test('is the newer one of two', async () => {
    const { disk, header, volumeKey } = await volume()
    const { header: next, steps } = await addSlot(header, volumeKey, { slot: 4, passphrase: secret('x'), cost: cheap })
    await apply(disk, steps.slice(0, 2))
    expect(await readHeader(disk.read, disk.size)).toMatchObject({ sequence: next.sequence, damaged: 'second' })
  })

  const refused = async (change: (metadata: any) => void, rejected: RegExp | string) => {
    const { disk, header } = await volume()
    const metadata = JSON.parse(JSON.stringify(header.metadata)) as Metadata
    change(metadata)
    await apply(disk, writeHeader({ ...header, metadata } as Header))
    await expect(readHeader(disk.read, disk.size)).rejects.toThrow(rejected)
  }

  test.each<[string, (metadata: any) => void, string]>([
    ['without key slots', (each) => (each.keyslots = {}), 'keyslots'],
    ['with a second segment', (each) => (each.segments[1] = each.segments[0]), 'segments'],
    ['with a segment in plain text', (each) => (each.segments[0].type = 'linear'), 'segments.0.type'],
    ['with another cipher', (each) => (each.segments[0].encryption = 'cipher_null-ecb'), 'segments.0.encryption'],
    ['with integrity', (each) => (each.segments[0].integrity = { type: 'hmac' }), 'segments.0.integrity'],
    ['under reencryption', (each) => (each.config.requirements = { mandatory: ['online-reencrypt'] }), 'config.requirements'],
    ['with a weak key derivation', (each) => (each.keyslots[0].kdf.type = 'pbkdf2'), 'keyslots.0.kdf.type'],
    ['with a costly key derivation', (each) => (each.keyslots[0].kdf.memory = 5 << 20), 'keyslots.0.kdf.memory'],
    ['with an endless key derivation', (each) => Object.assign(each.keyslots[0].kdf, { memory: 1 << 20, time: 65 }), 'costs too much'],
    ['with overlapping keys', (each) => (each.keyslots[1] = each.keyslots[0]), 'out of place'],
    ['with a key in the header', (each) => (each.keyslots[0].area.offset = '4096'), 'out of place'],
    ['with a key in the data', (each) => (each.keyslots[0].area.offset = '16777216'), 'out of place'],
    ['with too small an area', (each) => (each.keyslots[0].area.size = '4096'), 'too small'],
    ['with data over keys', (each) => (each.segments[0].offset = '4194304'), 'reach into the data'],
    ['with a digest of nothing', (each) => each.digests[0].keyslots.push('7'), 'key slot 7, which does not exist'],
  ])('%s is rejected', (_, change, rejected) => refused(change, rejected))

  test('of another version, size or place is rejected', async () => {
    for (const [at, value, rejected] of [
      [7, 1, 'version 1'],
      [14, 0x41, 'a size that no header has'],
    ] as const) {
      const { disk } = await volume()
      await disk.write(at, Uint8Array.of(value))
      await disk.write(16384, new Uint8Array(4096))
      await expect(readHeader(disk.read, disk.size)).rejects.toThrow(rejected)
    }
    await expect(readHeader(async (_, length) => new Uint8Array(length), 1000)).rejects.toThrow('beyond the end')
  })
})
