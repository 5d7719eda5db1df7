import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  checkUnits,
  installUnit,
  removeUnit,
  unitName,
  unitPath,
  unitText,
} from '../../../../../src/programs/talosctl/cluster/host/unit.ts'
import { planCluster } from '../../../../../src/programs/talosctl/cluster/plan/plan.ts'
import { request } from '../plan/request.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-unit-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const record = planCluster(request(), { kubernetes: 40001, machineApi: 40002 })

test('a unit starts and stops its cluster with nothing but absolute paths', () => {
  const text = unitText(record, '/home/me/.talos/clusters/demo', ['/opt/ichor/ichor', 'talosctl'])
  expect(text).toContain(
    'ExecStart=@/opt/ichor/ichor talosctl cluster start --wait=false --name demo --state /home/me/.talos/clusters\n' +
      'ExecStop=@/opt/ichor/ichor talosctl cluster stop --name demo --state /home/me/.talos/clusters\n',
  )
  expect(text).toContain('RequiresMountsFor=/home/me/.talos/clusters/demo /dist/rootfs.sqsh /opt/ichor/ichor\n')
})

test('what has a meaning in a unit is escaped', () => {
  const text = unitText(record, '/srv/50% of $HOME/"x"/demo', ['/opt/ichor', 'talosctl'])
  expect(text).toContain('--state "/srv/50%% of $$HOME/\\"x\\""\n')
})

test.if(Bun.which('systemd-analyze') !== null)('systemd finds nothing wrong with a unit', () => {
  const path = join(folder, unitName(record))
  writeFileSync(path, unitText(record, join(folder, 'a folder', 'demo'), [process.execPath, 'talosctl']))
  const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', '--man=no', path])
  expect([exitCode, stderr.toString()]).toEqual([0, ''])
})

test('a unit is installed enabled, and removed without a trace', async () => {
  for (let i = 0; i < 2; i++) await installUnit(record, join(folder, 'demo'), folder)
  const path = unitPath(record, folder)
  expect(readFileSync(path, 'utf8')).toBe(unitText(record, join(folder, 'demo')))
  expect(realpathSync(join(folder, 'multi-user.target.wants', unitName(record)))).toBe(realpathSync(path))
  for (let i = 0; i < 2; i++) await removeUnit(unitName(record), folder)
  expect([existsSync(path), readdirSync(join(folder, 'multi-user.target.wants'))]).toEqual([false, []])
})

test('a host without systemd is refused with the command for its own init', () => {
  expect(() => checkUnits('demo', join(folder, 'none'))).toThrow(
    `--restart-with-host: this host has no ${join(folder, 'none')}: have its own init call "talosctl cluster start --name demo --wait=false" instead`,
  )
  mkdirSync(join(folder, 'some'))
  checkUnits('demo', join(folder, 'some'))
})
