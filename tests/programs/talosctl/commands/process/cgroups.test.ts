import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { presets } from '../../../../../src/programs/talosctl/cgroups/columns.ts'
import { groupValue, share, shown } from '../../../../../src/programs/talosctl/cgroups/value.ts'
import { serverStream, unary } from '../../../../../src/rpc/server/method.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { talosctl } from '../../peer.ts'

const group = (files: Record<string, string>) => ({ name: 'g', files: new Map(Object.entries(files)), below: new Map() })

test('values are whole files, numbers behind keys, and sums over devices', () => {
  const one = group({
    'memory.max': 'max',
    'cpu.stat': 'usage_usec 30\nuser_usec 17',
    'io.stat': '8:0 rbytes=10 wbytes=1\n8:16 rbytes=5 wbytes=0',
    'io.pressure': 'some avg10=0.25 avg60=0.10 avg300=0.00 total=99\nfull avg10=0.05 avg60=0.00 avg300=0.00 total=9',
    'cgroup.procs': '',
  })
  expect(groupValue(one, 'memory.max')).toBe('max')
  expect(groupValue(one, 'cpu.stat', 'user_usec')).toBe('17')
  expect(groupValue(one, 'io.stat', '*.rbytes')).toBe('15')
  expect(groupValue(one, 'io.pressure', 'full.avg10')).toBe('0.05')
  expect(groupValue(one, 'memory.low')).toBeUndefined()
  expect([
    shown(undefined),
    shown('max', 'bytes'),
    shown('1610612736', 'bytes'),
    shown('900', 'bytes'),
    shown('61500000', 'microseconds'),
  ]).toEqual(['-', 'max', '1.5 GiB', '900 B', '1m2s'])
  expect([shown('', 'count'), shown('1\n2', 'count')]).toEqual(['0', '2'])
  expect([share('1', '4'), share('1', '0'), share('1', 'max'), share(undefined, '1')]).toEqual(['25.00%', '-', '-', '-'])
})

test('the ready-made sets have the columns of the contract', () => {
  const titles = Object.fromEntries(Object.entries(presets).map(([name, columns]) => [name, columns.map((one) => one.name).join(', ')]))
  expect(titles).toEqual({
    cpu: 'CpuWeight, CpuNice, CpuMax, CpuUser, User/%, CpuSystem, System/%, Throttled',
    cpuset: 'CpuSet, CpuSet(Eff), Mems, Mems(Eff)',
    io: 'Bytes Read/Written, ios Read/Write, PressAvg10, PressAvg60, PressTotal',
    memory: 'MemCurrent, MemPeak, MemLow, Peak/Low, MemHigh, MemMin, Current/Min, MemMax',
    process: 'PidsCurrent, PidsPeak, PidsMax, Procs, Threads, Processes',
    psi: 'MemCurrent, MemPsiSome10, MemPsi10, CpuPsi10, IoPsi10',
    swap: 'SwapCurrent, SwapPeak, SwapHigh, SwapMax, ZswapCurrent, ZswapMax, ZswapWriteback',
  })
})

function tree(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-cgroup-'))
  const put = (path: string, files: Record<string, string>) => {
    mkdirSync(join(folder, path), { recursive: true })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, path, name), text)
  }
  put('', { 'cpu.stat': 'user_usec 4000000\n' })
  put('init', { 'cpu.stat': 'user_usec 1000000\n', 'memory.current': '104857600\n', 'memory.max': 'max\n', 'cgroup.procs': '1\n7\n' })
  put('kubepods/burstable/0123abcd', { 'memory.current': '2147483648\n' })
  put('podruntime', { 'memory.current': '4096\n' })
  const tar = Bun.spawnSync(['tar', '-C', folder, '-cf', '-', '.']).stdout
  rmSync(folder, { recursive: true })
  return gzipSync(tar)
}

const packed = tree()
const versionTwo = [
  serverStream('machine.MachineService/Read', ['os:admin'], async function* () {
    yield { bytes: Buffer.from('cpu memory\n') }
  }),
  serverStream('machine.MachineService/Copy', ['os:admin'], async function* () {
    for (let at = 0; at < packed.length; at += 100) yield { bytes: packed.subarray(at, at + 100) }
  }),
  unary('machine.MachineService/Containers', ['os:admin'], () => ({
    messages: [{ containers: [{ id: 'kube-system/app:main', podId: 'kube-system/app', name: 'main', internalId: '0123abcd' }] }],
  })),
  unary('machine.MachineService/Processes', ['os:admin'], () => ({
    messages: [
      {
        processes: [
          { pid: 1, command: 'init' },
          { pid: 7, command: 'sh' },
        ],
      },
    ],
  })),
]

test('groups are a tree, containers have their names', async () => {
  const { code, stdout, stderr } = await talosctl(versionTwo, ['cgroups', '--preset', 'memory'])
  expect([code, stderr]).toEqual([0, ''])
  const cells = stdout
    .trimEnd()
    .split('\n')
    .map((line) => /^([│├└─ ]*\S+) +(\S+(?: [KMG]iB)?)/.exec(line)?.slice(1))
  expect(cells).toEqual([
    ['NAME', 'MemCurrent'],
    ['/', '-'],
    ['├──init', '100 MiB'],
    ['├──kubepods', '-'],
    ['│   └──burstable', '-'],
    ['│       └──kube-system/app/main', '2.0 GiB'],
    ['└──podruntime', '4.0 KiB'],
  ])
  const raw = await talosctl(versionTwo, ['cg', '--preset', 'memory', '--skip-cri-resolve'])
  expect(raw.stdout).toContain('└──0123abcd ')
  const cpu = await talosctl(versionTwo, ['cgroups', '--preset', 'cpu'])
  expect(cpu.stdout).toMatch(/^├──init .* 1\.00s +25\.00% /m)
  const process = await talosctl(versionTwo, ['cgroups', '--preset', 'process'])
  expect(process.stdout).toMatch(/^├──init .* 2 +- +init sh$/m)
})

test('columns of one’s own come from a file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-cgroup-'))
  const path = join(folder, 'columns.yaml')
  writeFileSync(
    path,
    'columns:\n  - {name: Current, file: memory.current, form: bytes}\n  - {name: User, file: cpu.stat, key: user_usec}\n',
  )
  const { stdout } = await talosctl(versionTwo, ['cgroups', '--schema-file', path])
  expect(stdout).toMatch(/^NAME +Current +User\n\/ +- +4000000\n├──init +100 MiB +1000000$/m)
  writeFileSync(path, 'columns:\n  - {name: Current, file: ../../etc/passwd}\n')
  const bad = await talosctl(versionTwo, ['cgroups', '--schema-file', path])
  expect([bad.code, bad.stderr]).toEqual([1, expect.stringMatching(/^"[^"]+": columns\.0\.file: [^\n]*want "columns:"[^\n]*\n$/)])
  const missing = await talosctl(versionTwo, ['cgroups', '--schema-file', '/no/such'])
  expect(missing.stderr).toBe('read "/no/such": ENOENT\n')
  const both = await talosctl(versionTwo, ['cgroups', '--schema-file', path, '--preset', 'cpu'])
  expect([both.code, both.stderr]).toEqual([1, expect.stringContaining('cannot be used with')])
  rmSync(folder, { recursive: true })
})

test('a node with version 1 is reported in one line, and several nodes are refused', async () => {
  const read = serverStream('machine.MachineService/Read', ['os:admin'], async function* () {
    yield* []
    throw new RpcError('NotFound', 'no such file')
  })
  const { code, stderr } = await talosctl([read], ['cgroups'])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^the node uses version 1 of control groups, [^\n]*\n$/)])
  const several = await talosctl([read], ['cgroups', '-n', '10.0.0.1,10.0.0.2'])
  expect(several.stderr).toContain('not supported with multiple nodes')
})
