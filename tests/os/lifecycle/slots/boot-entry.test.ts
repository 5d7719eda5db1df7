import { expect, test } from 'bun:test'
import {
  formatEntry,
  formatEntryName,
  inBootOrder,
  parseEntry,
  parseEntryName,
  slotOfEntryId,
} from '../../../../src/os/lifecycle/slots/boot-entry.ts'

test('names contain generation, slot and boot counters, as systemd-boot renames them', () => {
  for (const [file, name] of [
    ['ichor-000001-a.conf', { generation: 1, slot: 'a' }],
    ['ichor-000012-b+3.conf', { generation: 12, slot: 'b', left: 3, done: 0 }],
    ['ichor-000012-b+2-1.conf', { generation: 12, slot: 'b', left: 2, done: 1 }],
    ['ichor-000012-b+0-3.conf', { generation: 12, slot: 'b', left: 0, done: 3 }],
  ] as const) {
    expect(parseEntryName(file)).toEqual(name)
    expect(formatEntryName(name)).toBe(file)
  }
  for (const file of ['ichor-1-a.conf', 'ichor-000001-c.conf', 'ichor-000001-a+x.conf', 'other.conf', 'ichor-000001-a.conf.bak'])
    expect(parseEntryName(file)).toBeUndefined()
})

test('the newest entry that is not exhausted boots first', () => {
  const order = inBootOrder([
    { generation: 3, slot: 'a' },
    { generation: 5, slot: 'b', left: 0, done: 3 },
    { generation: 4, slot: 'a', left: 2, done: 1 },
  ])
  expect(order.map(({ generation }) => generation)).toEqual([4, 3, 5])
})

test.each([{}, { encryption: ['luks2'] }])('entries round-trip, and truncated ones are ignored (%j)', (declared) => {
  const entry = {
    generation: 2,
    slot: 'b' as const,
    left: 3,
    done: 0,
    kernel: '/EFI/ichor/0123.efi',
    version: 'v1.13.1',
    rootHash: 'ab'.repeat(32),
    image: '0123456789abcdef',
    ...declared,
  }
  const text = formatEntry(entry, 'console=ttyS0 pti=on')
  const file = formatEntryName(entry)
  expect(parseEntry(file, text)).toEqual({ ...entry, file, commandLine: 'console=ttyS0 pti=on' })
  for (let length = 0; length < text.length - 1; length++) expect(parseEntry(file, text.slice(0, length))).toBeUndefined()
})

test('the entry reported by systemd-boot identifies the slot', () => {
  expect(slotOfEntryId('ichor-000012-b+3.conf')).toBe('b')
  expect(slotOfEntryId('ichor-000012-a')).toBe('a')
  expect(slotOfEntryId('auto-reboot-to-firmware-setup')).toBeUndefined()
})
