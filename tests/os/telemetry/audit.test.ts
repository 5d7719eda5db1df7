import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { auditFile } from '../../../src/os/telemetry/audit/audit-file.ts'
import { type AuditKind, AuditLog } from '../../../src/os/telemetry/audit/audit-log.ts'
import { observeCalls } from '../../../src/os/telemetry/controllers/api-call.ts'
import { APICall } from '../../../src/os/telemetry/resources/api-call.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import { methodShape } from '../../../src/rpc/schema.ts'
import type { AdmittedCall } from '../../../src/rpc/server/call.ts'
import { type Method, unary } from '../../../src/rpc/server/method.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'
import { servedMethods } from '../served-methods.ts'

const now = () => new Date('2026-11-21T12:00:00Z')
const looks = unary('machine.MachineService/Hostname', ['os:admin', 'os:reader'], () => ({ messages: [] }))
const changes = unary('machine.MachineService/Reboot', ['os:admin'], () => ({ messages: [] }))
const call = (method: Method, name = 'alice', metadata: Record<string, string[]> = {}): AdmittedCall => ({
  method,
  roles: new Set(['os:reader', 'os:admin']),
  metadata: { 'ichor-caller-address': ['10.5.0.1'], 'ichor-caller-name': [name], ...metadata },
  peer: 'unix',
})

function log() {
  const written: Record<AuditKind, string> = { changes: '', reads: '' }
  const write = (lines: string, kind: AuditKind) => {
    written[kind] += lines
  }
  return { audit: new AuditLog({ write, now }), written }
}

/** A call that is let in, and ends so. */
function admitted(audit: AuditLog, made: AdmittedCall, status: 'OK' | 'FailedPrecondition' = 'OK', milliseconds = 1): void {
  audit.admitted(made)
  audit.ended(made, status, milliseconds)
}

const linesOf = (text: string) => text.split('\n').length - 1

test('a change is written before it takes effect and when it has ended; what only reads is counted and written together', () => {
  const { audit, written } = log()
  admitted(audit, call(looks))
  admitted(audit, call(looks), 'OK', 3)
  const change = call(changes)
  audit.admitted(change)
  const line = (outcome: string, ms: string) =>
    `2026-11-21T12:00:00.000Z method=machine.MachineService/Reboot outcome=${outcome} from=10.5.0.1 by="alice" roles=os:admin,os:reader ms=${ms}\n`
  expect(written.changes).toBe(line('started', '0.0'))
  audit.ended(change, 'OK', 12.34)
  expect(written.changes).toBe(line('started', '0.0') + line('OK', '12.3'))
  expect(written.reads).toBe('')
  audit.flush()
  expect(written.reads).toBe(
    '2026-11-21T12:00:00.000Z method=machine.MachineService/Hostname outcome=OK from=10.5.0.1 by="alice" roles=os:admin,os:reader ms=3.0 calls=2\n',
  )
})

test('whether a method changes something is declared with it', () => {
  const { audit, written } = log()
  for (const method of servedMethods('metal')) admitted(audit, call(method))
  audit.flush()
  const changing = servedMethods('metal').filter(({ path }) => !methodShape(path).readOnly)
  expect(linesOf(written.changes)).toBe(2 * changing.length)
  for (const path of [
    'machine.MachineService/ApplyConfiguration',
    'storage.StorageService/BlockDeviceWipe',
    'ichor.v1.ReleaseService/Install',
  ])
    expect(written.changes).toContain(`method=${path} outcome=started`)
})

test('a flood of refusals becomes one line, and a name cannot forge another line', () => {
  const { audit, written } = log()
  for (let i = 0; i < 100_000; i++) audit.ended(call(changes, encodeURIComponent('x"\nmethod=forged')), 'PermissionDenied', 0.1)
  audit.flush()
  expect(written.changes).toBe('')
  expect(linesOf(written.reads)).toBe(1)
  expect(written.reads).toContain('outcome=PermissionDenied')
  expect(written.reads).toContain('by="x\\"\\nmethod=forged"')
  expect(written.reads).toContain('calls=100000')
})

test('reads and refusals of every kind, for seven minutes, never push a change out, and write a few lines a second', () => {
  const { audit, written } = log()
  admitted(audit, call(changes, 'admin'))
  const methods = servedMethods('metal')
  for (let second = 0; second < 420; second++) {
    for (const method of methods) {
      audit.ended(call(method, `n${second}`), 'PermissionDenied', 0.1)
      if (methodShape(method.path).readOnly) admitted(audit, call(method, `n${second}`))
    }
    audit.flush()
    if (second === 0) expect(linesOf(written.reads)).toBe(21)
  }
  expect(linesOf(written.reads)).toBe(21 * 420)
  expect(linesOf(written.changes)).toBe(2)
  const recent = audit.recent()
  expect(recent[0]?.[1]).toMatchObject({ by: 'admin', outcome: 'started' })
  expect(recent).toHaveLength(102)
})

test('callers that are all different do not grow it without bound, and every call is counted', () => {
  const { audit, written } = log()
  for (let i = 0; i < 5_000; i++) admitted(audit, call(looks, `n${i}`))
  audit.flush()
  expect(linesOf(written.reads)).toBe(21)
  const counted = [...written.reads.matchAll(/ calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0)
  const single = written.reads.split('\n').filter((line) => line && !line.includes(' calls=')).length
  expect(counted + single).toBe(5_000)
})

test('its last lines are resources, numbered on, the oldest gone', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const audit = new AuditLog({ write() {}, now })
  runtime.register(observeCalls(audit))
  runtime.start()
  for (let i = 0; i < 125; i++) admitted(audit, call(changes), i % 2 ? 'FailedPrecondition' : 'OK', 1.26)
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

test('a server records the outcome of every call, and never its content', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-audit-'))
  const path = join(folder, 'api.sock')
  let written = ''
  const audit = new AuditLog({
    write: (lines) => {
      written += lines
    },
    now,
  })
  let before = ''
  const secret = unary('machine.MachineService/ApplyConfiguration', ['os:admin'], ({ data }) => {
    before = written
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
    'machine.MachineService/ApplyConfiguration started unix',
    'machine.MachineService/Hostname OK unix',
  ])
  expect(before).toContain('method=machine.MachineService/ApplyConfiguration outcome=started')
  expect(written).not.toContain('SECRET')
  rmSync(folder, { recursive: true })
})

test('its files are for root alone, grow at their ends, and are put aside when they are large, each for itself', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-audit-'))
  const path = join(folder, 'api.log')
  const paths = { changes: path, reads: join(folder, 'reads.log') }
  const write = auditFile({ files }, () => {}, paths)
  write('one\n', 'changes')
  write('two\n', 'changes')
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  writeFileSync(paths.reads, 'x'.repeat((4 << 20) + 1))
  write('three\n', 'reads')
  expect(readFileSync(paths.reads, 'utf8')).toBe('three\n')
  expect(statSync(`${paths.reads}.1`).size).toBe((4 << 20) + 1)
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n')
  rmSync(folder, { recursive: true })
  expect(() => auditFile({ files }, () => {}, paths)('no folder\n', 'changes')).not.toThrow()
})
