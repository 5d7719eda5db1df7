import { expect, test } from 'bun:test'
import { mapperFlags, readMapperAnswer, writeMapperRequest } from '../../../src/wire/block/device-mapper.ts'

test('a request has the layout of struct dm_ioctl with its targets', () => {
  const bytes = Buffer.from(
    writeMapperRequest({
      name: 'luks2-STATE',
      uuid: 'CRYPT-LUKS2-ab-luks2-STATE',
      flags: mapperFlags.secureData,
      targets: [{ type: 'crypt', start: 0, sectors: 2048, parameters: 'aes-xts-plain64 :64:logon:x:k 0 8:1 32768' }],
    }),
  )
  expect(bytes.length).toBe(312 + 88)
  expect([0, 4, 8, 12, 16, 20, 28].map((at) => bytes.readUInt32LE(at))).toEqual([4, 0, 0, 400, 312, 1, 0x8000])
  expect(bytes.toString('latin1', 48, 60)).toBe('luks2-STATE\0')
  expect(bytes.toString('latin1', 176, 203)).toBe('CRYPT-LUKS2-ab-luks2-STATE\0')
  expect([bytes.readBigUInt64LE(312), bytes.readBigUInt64LE(320), bytes.readUInt32LE(332)]).toEqual([0n, 2048n, 88])
  expect(bytes.toString('latin1', 336, 342)).toBe('crypt\0')
  expect(bytes.toString('latin1', 352, 394)).toBe('aes-xts-plain64 :64:logon:x:k 0 8:1 32768\0')
  expect(() => writeMapperRequest({ name: 'x'.repeat(128) })).toThrow('too long')
})

test('an answer names the device', () => {
  const bytes = Buffer.from(writeMapperRequest({ name: 'a', uuid: 'CRYPT-x' }))
  bytes.writeInt32LE(2, 24)
  bytes.writeUInt32LE(mapperFlags.activePresent, 28)
  bytes.writeUInt32LE((254 << 8) | 0x23 | (0x1 << 20), 40)
  expect(readMapperAnswer(bytes)).toEqual({ major: 254, minor: 0x123, uuid: 'CRYPT-x', flags: 32, openCount: 2 })
  expect(() => readMapperAnswer(new Uint8Array(100))).toThrow('too short')
})
