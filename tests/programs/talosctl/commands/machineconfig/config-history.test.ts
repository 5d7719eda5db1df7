import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { applyConfiguration } from '../../../../../src/os/config/api/apply.ts'
import { configMethods } from '../../../../../src/os/config/api/config-service.ts'
import { ConfigApply } from '../../../../../src/os/config/apply/config-apply.ts'
import { MachineConfig } from '../../../../../src/os/config/resources/machine-config.ts'
import { config, machineInMemory } from '../../../../os/config/machine.ts'
import { node, talosctl } from '../../peer.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-history-'))
afterAll(() => rmSync(folder, { recursive: true }))
const [first, second] = [config('worker'), config('worker', 'machine: {sysctls: {a.b: "1"}}')]
const file = join(folder, 'second.yaml')
writeFileSync(file, second)

const { machine, store } = machineInMemory()
const service = new ConfigApply(machine)
const methods = [applyConfiguration(service), ...configMethods(service)]
const run = (...args: string[]) => talosctl(methods, args, { store, nodes: [node] })

beforeAll(() => {
  store.put(MachineConfig, 'v1alpha1', first)
})

test('a configuration that waits to be confirmed is listed as such, and as in force', async () => {
  const { code, stderr } = await run('apply-config', '-f', file, '--confirm-within', '5m')
  expect([code, stderr]).toEqual([
    0,
    'Applied configuration without a reboot, reverted in 300s unless confirmed\n' +
      'confirm it with "talosctl apply-config --confirm" before 2026-11-21T12:05:00Z\n',
  ])
  const { stdout } = await run('config-history')
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/))
  expect(lines[0]).toEqual(['NODE', 'ID', 'TIME', 'MODE', 'BY', 'SHA256', 'STATE'])
  expect(lines.slice(1).map(([, id, time, mode, by, , state]) => [id, time, mode, by?.replace(/:\d+$/, ''), state])).toEqual([
    ['2', '2026-11-21T12:00:00Z', 'auto', 'os:admin@127.0.0.1', 'in force, to be confirmed'],
    ['1', lines[2]![2]!, 'found', 'machine', undefined],
  ])
})

test('confirming it makes it stay, once', async () => {
  expect((await run('apply-config', '--confirm')).stderr).toMatch(/: configuration 2 is confirmed and stays\n$/)
  const again = await run('apply-config', '--confirm')
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('none waits to be confirmed')])
})

test('one can be shown, compared and brought back', async () => {
  expect((await run('config-history', 'show', '1')).stdout).toBe(first)
  expect((await run('config-history', 'show', '0')).stdout).toBe(second)
  expect((await run('config-history', 'diff', '1')).stdout).toBe('+ machine.sysctls["a.b"]: "1"\n')
  expect((await run('config-history', 'diff', '1', '2')).stdout).toBe('+ machine.sysctls["a.b"]: "1"\n')
  expect((await run('config-history', 'restore', '1', '--dry-run')).stdout).toContain('\n- machine.sysctls["a.b"]: "1"\n')
  expect((await run('config-history', 'restore', '1')).code).toBe(0)
  expect(store.get(MachineConfig, 'v1alpha1')?.spec).toBe(first)
  expect((await run('config-history', 'ls')).stdout).toContain('auto (restored 1)')
})

test('unknown numbers are reported', async () => {
  expect((await run('config-history', 'show', 'x')).stderr).toContain('"x" is not the number of a configuration')
  expect((await run('config-history', 'show', '99')).stderr).toContain('only 1, 2, 3 are remembered')
  expect((await run('config-history', 'restore', '0')).stderr).toContain('is the one in force')
  expect((await run('apply-config', '-f', file, '--confirm')).stderr).toContain('leave the file and patches out')
})
