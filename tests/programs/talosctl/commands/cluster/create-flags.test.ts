/** Every flag of the field's `cluster create`, from the table: it changes what is requested, or is refused in one line that names it. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, requestOf } from '../../../../../src/programs/talosctl/commands/cluster/create.ts'
import { UsageError } from '../../../../../src/programs/talosctl/failure.ts'
import { spell } from '../../../../../src/programs/talosctl/flags.ts'
import { textIo } from '../../peer.ts'

const rows = readFileSync(join(import.meta.dir, '../../contract/cli-flags.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))
const tabled = (path: string) =>
  rows.filter(([command]) => command === `talosctl ${path}`).map(([, flag = '', , type = '', standard = '']) => ({ flag, type, standard }))

/** Values that a flag takes, where its type alone does not give one. */
const samples: Record<string, string> = {
  cidr: '10.77.0.0/24',
  'config-patch': '{"machine":{"env":{"A":"b"}}}',
  'config-patch-control-plane': '{"machine":{"env":{"A":"b"}}}',
  'config-patch-controlplanes': '{"machine":{"env":{"A":"b"}}}',
  'config-patch-worker': '{"machine":{"env":{"A":"b"}}}',
  'config-patch-workers': '{"machine":{"env":{"A":"b"}}}',
  disks: 'nvme:10GiB',
  endpoint: '192.0.2.1',
  'exposed-ports': '8080:30080',
  'extra-disks-drivers': 'nvme',
  'kubernetes-version': '1.35.0',
  nameservers: '192.0.2.53',
  mount: 'type=bind,source=/data,target=/mnt',
  presets: 'pxe',
  provisioner: 'qemu',
  'registry-mirror': 'registry.test=http://mirror.test',
  subnet: '10.77.0.0/24',
  'with-firewall': 'block',
}
const byType: Record<string, string> = {
  int: '3',
  uint: '4096',
  uint16: '5001',
  float64: '0.5',
  duration: '5m',
  'string(mb,gb)': '3GiB',
  agent: 'true',
}
const bounded: Record<string, string> = {
  mtu: '1400',
  'control-plane-port': '7443',
  'kubeprism-port': '7446',
  disk: '8192',
  'extra-disks-size': '6144',
}
/** Flags that mean something beside another one only. */
const beside: Record<string, string[]> = {
  'extra-disks-size': ['--extra-disks', '1'],
  'extra-disks-drivers': ['--extra-disks', '1'],
}
const mebibyte = 1024 ** 2
/** What is done here anyway, whatever the flag states. */
const anyway = ['with-apply-config', 'disk-preallocate']

function words({ flag, type, standard }: { flag: string; type: string; standard: string }): string[] {
  if (type === 'bool') return [standard === 'true' ? `--${flag}=false` : `--${flag}`]
  if (/cpus/.test(flag)) return [`--${flag}`, '3.0']
  return [`--${flag}`, samples[flag] ?? bounded[flag] ?? byType[type] ?? 'sample']
}

/** What a command line requests, or the line that refuses it. */
async function outcome(kind: string, args: readonly string[]): Promise<{ request: string } | { refused: string }> {
  const io = textIo({ env: { HOME: '/home/me' } })
  const command = create(io).exitOverride()
  command.configureOutput({ writeErr: () => {} })
  let request = ''
  command.action(async (_: string, own, self) => {
    request = JSON.stringify(await requestOf(io, kind, own, self))
  })
  try {
    await command.parseAsync(spell(args, command), { from: 'user' })
    return { request }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return { refused: error.message }
  }
}

describe.each([
  ['cluster create', 'container'],
  ['cluster create dev', 'dev'],
  ['cluster create qemu', 'qemu'],
  ['cluster create docker', 'docker'],
])('%s', (path, kind) => {
  test.each(tabled(path).filter(({ flag }) => !anyway.includes(flag)))('--$flag acts or is refused', async (row) => {
    const { flag } = row
    const others = beside[flag] ?? []
    let result = await outcome(kind, [...others, ...words(row)])
    if ('refused' in result && result.refused.includes('is for virtual machines')) {
      expect(result.refused).toMatch(/^--\S+ is for virtual machines: add --provisioner qemu, or leave it out$/)
      result = await outcome('qemu', [...others, ...words(row)])
      if ('request' in result) expect(result).not.toEqual(await outcome('qemu', others))
    } else if ('request' in result) expect(result).not.toEqual(await outcome(kind, others))
    if ('refused' in result) expect(result.refused).toMatch(new RegExp(`^--${flag}(=false)?(: | [^\\n]*: )[^\\n]+$`))
  })
})

test.each(tabled('cluster create').filter(({ type, standard }) => type === 'bool' && standard === 'false'))(
  '--$flag=false requests what is done anyway',
  async ({ flag }) => {
    expect(await outcome('container', [`--${flag}=false`])).toEqual(await outcome('container', []))
  },
)

test.each(['container', 'qemu', 'docker'])('nodes (%s) stay in maintenance without an injected configuration', async (kind) => {
  const unconfigured = async (...args: string[]) => {
    const result = await outcome(kind, args)
    return 'request' in result ? JSON.parse(result.request).request.unconfigured : result
  }
  expect(await unconfigured()).toBe(false)
  expect(await unconfigured('--skip-injecting-config')).toBe(true)
  expect(await unconfigured('--skip-injecting-config', '--with-apply-config')).toBe(false)
})

test('sizes of single disks are those of --disks, and contradict it', async () => {
  const disks = async (...args: string[]) => {
    const result = await outcome('qemu', args)
    return 'request' in result ? JSON.parse(result.request).request.machines.disks : result.refused
  }
  expect(await disks('--disk', '8192', '--extra-disks', '2', '--extra-disks-drivers', 'nvme,ahci')).toEqual([
    { bus: 'virtio', size: 8192 * mebibyte },
    { bus: 'nvme', size: 5120 * mebibyte },
    { bus: 'ahci', size: 5120 * mebibyte },
  ])
  expect(await disks('--disk', '8192', '--disks', 'virtio:10GiB')).toBe('--disks and --disk contradict each other: leave one out')
})
