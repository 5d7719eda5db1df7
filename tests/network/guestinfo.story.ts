/**
 * guestinfo of VMware: the field's client and the program of the image read the same values from a stand-in for the hypervisor, which
 * executes what the processor refuses; the platform has its configuration from there.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildFreestanding } from '../../rootfs/build/freestanding.ts'
import * as files from '../../src/linux/fs/files.ts'
import * as mount from '../../src/linux/fs/mount.ts'
import { guestinfoReader } from '../../src/os/network/guestinfo.ts'
import { vmware } from '../../src/os/network/platform/providers/vmware.ts'
import { openPlatform } from '../../src/os/network/platform/transport.ts'
import { spawn } from '../../src/supervise/spawn.ts'
import { builtTool, run } from '../etcd/etcd-tools.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-guestinfo-'))
const programs = { host: '', client: '', ours: '' }
const values: Record<string, string> = {
  // The field's client sends requests whose length is 3 above a multiple of 4 with its last bytes in the wrong order.
  'guestinfo.ovfenv': '<Environment/>',
  'guestinfo.a': 'a',
  'guestinfo.ab': 'ab',
  'guestinfo.abcd.e': 'abc',
  'guestinfo.empty': '',
  'guestinfo.long1': 'x'.repeat(100_003),
  'guestinfo.userdata': Buffer.from('version: v1alpha1\n').toString('base64'),
  'guestinfo.metadata': Buffer.from('local-hostname: node-5\n').toString('base64'),
  'guestinfo.longest': 'y'.repeat((4 << 20) + 1),
}
const file = join(folder, 'values.json')

beforeAll(async () => {
  writeFileSync(file, JSON.stringify(values))
  programs.host = await builtTool(folder, 'host', 'tests/network/guestinfo', './host')
  programs.client = await builtTool(folder, 'client', 'tests/network/guestinfo', './client')
  programs.ours = join((await buildFreestanding('guestinfo')).folder, 'guestinfo')
}, 600_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a program on the stand-in, which loses this number of channels. */
const onHost = (program: string, key: string, lost = 0) => run([programs.host, file, String(lost), program, key])

for (const key of Object.keys(values).filter((each) => `info-get ${each}`.length % 4 !== 3 && each !== 'guestinfo.longest'))
  test(`${key}: the field's client and ours read the same`, async () => {
    const [theirs, ours] = await Promise.all([onHost(programs.client, key), onHost(programs.ours, key)])
    expect([ours.code, ours.stdout]).toEqual([0, values[key]!])
    expect(theirs.stdout).toBe(ours.stdout)
  })

test('a value that is not there is an exit code of its own', async () => {
  expect(await onHost(programs.ours, 'guestinfo.none')).toEqual({ code: 1, stdout: '', stderr: '' })
})

test('a channel that is lost while the machine is moved is opened again, five times', async () => {
  const { code, stdout } = await onHost(programs.ours, 'guestinfo.long1', 4)
  expect([code, stdout]).toEqual([0, values['guestinfo.long1']!])
  const lost = await onHost(programs.ours, 'guestinfo.long1', 5)
  expect(lost).toEqual({ code: 2, stdout: '', stderr: 'the hypervisor closed the channel for guestinfo five times\n' })
})

test('what is too long, another hypervisor and a missing key are one line each', async () => {
  const tooLong = await onHost(programs.ours, 'guestinfo.longest')
  expect([tooLong.code, tooLong.stderr]).toEqual([2, 'the value is longer than 4 MiB\n'])
  const elsewhere = await run([programs.ours, 'guestinfo.a'])
  expect([elsewhere.code, elsewhere.stderr]).toEqual([2, 'this machine does not run on VMware\n'])
  const without = await run([programs.ours])
  expect([without.code, without.stderr]).toEqual([2, 'usage: guestinfo KEY\n'])
})

describe('the platform', () => {
  const open = (argv: (key: string) => string[]) =>
    openPlatform(
      {
        guestinfo: guestinfoReader({
          spawn: (command) => spawn({ ...command, argv: argv(command.argv[1] ?? '') }),
          files: { exists: () => true },
        }),
        files,
        mount,
        store: { list: () => [] },
        commandLine: 'talos.platform=vmware talos.config=guestinfo',
      },
      AbortSignal.timeout(60_000),
    )

  test('has its configuration and its host name from there', async () => {
    const transport = open((key) => [programs.host, file, '0', programs.ours, key])
    expect(await vmware.userData(transport)).toBe('version: v1alpha1\n')
    expect(await vmware.network(transport)).toMatchObject({ metadata: { platform: 'vmware', hostname: 'node-5' } })
  })

  test('reports in one line that it does not run on VMware', async () => {
    const transport = open((key) => [programs.ours, key])
    await expect(vmware.userData(transport)).rejects.toThrow(
      'read guestinfo.talos.config: exit code 2: this machine does not run on VMware',
    )
  })
})
