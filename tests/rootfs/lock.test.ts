import { expect, test } from 'bun:test'
import { formatLock, LockError, parseLock } from '../../rootfs/debian/lock.ts'

const sha256 = 'a'.repeat(64)

test('a lock is read back as it was written, sorted by name', () => {
  const packages = [
    { name: 'nftables', version: '1.0.6-2+deb12u2', sha256 },
    { name: 'e2fsprogs', version: '1.47.0-2+b2', sha256 },
    { name: 'libext2fs2', version: '1:2~rc1-3', sha256 },
  ]
  const text = formatLock(packages)
  expect([...parseLock(text).values()]).toEqual([packages[1]!, packages[2]!, packages[0]!])
  expect(formatLock(parseLock(text).values())).toBe(text)
})

test('comments and empty lines are ignored', () => {
  expect(parseLock(`# all of them\n\nmount 2.38.1-5 ${sha256} # needed\n`).get('mount')).toEqual({
    name: 'mount',
    version: '2.38.1-5',
    sha256,
  })
})

test('a wrong line is named', () => {
  expect(() => parseLock(`mount 2.38.1-5 ${sha256}\nmount\n`)).toThrow(
    new LockError('debian.lock line 2: must be "name version sha256": mount'),
  )
  expect(() => parseLock(`mount 1 ${sha256}\nmount 1 ${sha256}\n`)).toThrow('debian.lock line 2: mount is there twice')
  expect(() => parseLock(`mount 1 ${'a'.repeat(63)}`)).toThrow(LockError)
  expect(() => parseLock(`../mount 1 ${sha256}`)).toThrow(LockError)
})
