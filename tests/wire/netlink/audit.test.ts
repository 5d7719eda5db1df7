import { expect, test } from 'bun:test'
import { readAuditRecord, readAuditStatus, writeAuditChange } from '../../../src/wire/netlink/audit.ts'
import { recordTypeName } from '../../../src/wire/netlink/audit-record-types.ts'

/** A datagram with a header whose length is that of the text alone, as kernels send it. */
function record(type: number, text: string): Uint8Array {
  const header = Buffer.alloc(16)
  header.writeUInt32LE(text.length, 0)
  header.writeUInt16LE(type, 4)
  return Buffer.concat([header, Buffer.from(text, 'latin1')])
}

test('a record is a line with the name of its type, whatever its header states as length', () => {
  expect(readAuditRecord(record(1326, 'audit(1700000000.123:7): auid=0 sig=31 syscall=157'))).toBe(
    'type=SECCOMP msg=audit(1700000000.123:7): auid=0 sig=31 syscall=157',
  )
  expect(readAuditRecord(record(1400, 'audit(1.000:1): a\nb\0\0'))).toBe('type=AVC msg=audit(1.000:1): a?b')
  expect([2, 1000, 1099, 3000].map((type) => readAuditRecord(record(type, 'x')))).toEqual([undefined, undefined, undefined, undefined])
  expect(() => readAuditRecord(new Uint8Array(15))).toThrow('audit message')
})

test('the numbers of types are those of linux/audit.h', () => {
  const expected = {
    1112: 'USER_LOGIN',
    1138: 'SOFTWARE_UPDATE',
    1300: 'SYSCALL',
    1309: 'EXECVE',
    1339: 'DM_EVENT',
    1419: 'MAC_CALIPSO_DEL',
  }
  for (const [type, name] of Object.entries(expected)) expect([type, recordTypeName(Number(type))]).toEqual([type, name])
  for (const [type, name] of [
    [1503, 'APPARMOR_DENIED'],
    [1701, 'ANOM_ABEND'],
    [1807, 'INTEGRITY_POLICY_RULE'],
    [1301, 'UNKNOWN[1301]'],
  ] as const)
    expect(recordTypeName(type)).toBe(name)
})

test('a change names its fields, and a status is read where the kernel has put it', () => {
  const change = Buffer.from(writeAuditChange({ enabled: true, rateLimit: 4096, backlogLimit: 8192 }))
  expect([0, 4, 12, 16, 20].map((offset) => change.readUInt32LE(offset))).toEqual([25, 1, 0, 4096, 8192])
  const status = Buffer.alloc(44)
  status.writeUInt32LE(1, 4)
  status.writeUInt32LE(321, 12)
  status.writeUInt32LE(5, 24)
  expect(readAuditStatus(status)).toEqual({ enabled: true, pid: 321, lost: 5 })
  expect(() => readAuditStatus(status.subarray(0, 31))).toThrow('audit status')
})
