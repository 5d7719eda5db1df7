import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/files.ts'
import { auditFile } from '../../../src/os/runtime/audit/audit-file.ts'
import { AuditLog } from '../../../src/os/runtime/audit/audit-log.ts'
import { observeCalls } from '../../../src/os/runtime/controllers/api-call.ts'
import { APICall } from '../../../src/os/runtime/resources/api-call.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import type { AdmittedCall } from '../../../src/rpc/server/call.ts'
import { unary } from '../../../src/rpc/server/method.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'

const now = () => new Date('2026-11-21T12:00:00Z')
const looks = unary('machine.MachineService/Hostname', ['os:admin', 'os:reader'], () => ({ messages: [] }))
const changes = unary('machine.MachineService/Reboot', ['os:admin'], () => ({ messages: [] }))
const call = (method: typeof looks, name = 'alice', metadata: Record<string, string[]> = {}): AdmittedCall => ({
  method,
  roles: new Set(['os:reader', 'os:admin']),
  metadata: { 'ichor-caller-address': ['10.5.0.1'], 'ichor-caller-name': [name], ...metadata },
  peer: 'unix',
})

test('what changes the machine is written at once, what only looks is counted and written together', () => {
  let written = ''
  const audit = new AuditLog({
    write: (lines) => {
      written += lines
    },
    now,
  })
  audit.ended(call(looks), 'OK', 1)
  audit.ended(call(looks), 'OK', 3)
  audit.ended(call(changes), 'OK', 12.34)
  expect(written).toBe(
    '2026-11-21T12:00:00.000Z method=machine.MachineService/Reboot outcome=OK from=10.5.0.1 by="alice" roles=os:admin,os:reader ms=12.3\n',
  )
  written = ''
  audit.flush()
  expect(written).toBe(
    '2026-11-21T12:00:00.000Z method=machine.MachineService/Hostname outcome=OK from=10.5.0.1 by="alice" roles=os:admin,os:reader ms=3.0 calls=2\n',
  )
})

test('a flood of refusals becomes one line, and a name cannot forge another line', () => {
  const lines: string[] = []
  const audit = new AuditLog({ write: (text) => void lines.push(text), now })
  for (let i = 0; i < 100_000; i++) audit.ended(call(changes, encodeURIComponent('x"\nmethod=forged')), 'PermissionDenied', 0.1)
  audit.flush()
  expect(lines).toHaveLength(1)
  expect(lines[0]!.trimEnd().split('\n')).toHaveLength(1)
  expect(lines[0]).toContain('outcome=PermissionDenied')
  expect(lines[0]).toContain('by="x\\"\\nmethod=forged"')
  expect(lines[0]).toContain('calls=100000')
})

test('callers that are all different do not grow it without bound', () => {
  let written = 0
  const audit = new AuditLog({
    write: (text) => {
      written += text.split('\n').length - 1
    },
    now,
  })
  for (let i = 0; i < 5_000; i++) audit.ended(call(looks, `n${i}`), 'OK', 0.1)
  expect(written).toBeGreaterThanOrEqual(4_000)
  expect(audit.recent()).toHaveLength(200)
  audit.flush()
  expect(audit.recent().at(-1)?.[0]).toBe(5_000)
})

test('its last lines are resources, numbered on, the oldest gone', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const audit = new AuditLog({ write() {}, now })
  runtime.register(observeCalls(audit))
  runtime.start()
  for (let i = 0; i < 250; i++) audit.ended(call(changes), i % 2 ? 'OK' : 'FailedPrecondition', 1.26)
  await runtime.settled()
  const all = store.list(APICall)
  expect(all).toHaveLength(200)
  expect(all[0]?.metadata.id).toBe('000000051')
  expect(all.at(-1)?.spec).toEqual({
    time: '2026-11-21T12:00:00.000Z',
    method: 'machine.MachineService/Reboot',
    outcome: 'OK',
    from: '10.5.0.1',
    by: 'alice',
    roles: ['os:admin', 'os:reader'],
    calls: 1,
    milliseconds: 1.3,
  })
  runtime.stop()
})

test('a server tells of every call how it ended, and never what was in it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-audit-'))
  const path = join(folder, 'api.sock')
  let written = ''
  const audit = new AuditLog({
    write: (lines) => {
      written += lines
    },
    now,
  })
  const secret = unary('machine.MachineService/ApplyConfiguration', ['os:admin'], ({ data }) => {
    throw new Error(`cannot apply ${Buffer.from(data).toString()}`)
  })
  const server = await serveUnix({ path }, { methods: [looks, secret], store: new Store(), log: silent, observer: audit })
  const channel = connect({ unix: path }, { connectTimeout: 2000 })
  const as = (role: string) => ({ metadata: { 'talos-role': [role] }, deadline: 2000 })
  await channel.unary('machine.MachineService/Hostname', {}, as('os:reader'))
  const data = Buffer.from('TOP SECRET')
  await channel.unary('machine.MachineService/ApplyConfiguration', { data }, as('os:admin')).catch(() => {})
  await channel.unary('machine.MachineService/ApplyConfiguration', { data }, as('os:reader')).catch(() => {})
  channel.close()
  await server.close()
  audit.flush()
  const outcomes = written
    .trimEnd()
    .split('\n')
    .map((line) => /method=(\S+) outcome=(\S+) from=(\S+)/.exec(line)?.slice(1).join(' '))
  expect(outcomes.toSorted()).toEqual([
    'machine.MachineService/ApplyConfiguration PermissionDenied unix',
    'machine.MachineService/ApplyConfiguration Unknown unix',
    'machine.MachineService/Hostname OK unix',
  ])
  expect(written).not.toContain('SECRET')
  rmSync(folder, { recursive: true })
})

test('its file is for root alone, grows at its end, and is put aside when it is large', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-audit-'))
  const path = join(folder, 'api.log')
  const write = auditFile({ files }, () => {}, path)
  write('one\n')
  write('two\n')
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  writeFileSync(path, 'x'.repeat((4 << 20) + 1))
  write('three\n')
  expect(readFileSync(path, 'utf8')).toBe('three\n')
  expect(statSync(`${path}.1`).size).toBe((4 << 20) + 1)
  rmSync(folder, { recursive: true })
  expect(() => auditFile({ files }, () => {}, path)('no folder\n')).not.toThrow()
})
