/** What others make is recognised as blkid recognises it, and what we make is recognised by them. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import * as block from '../../src/linux/block/device.ts'
import { attachLoop } from '../../src/linux/block/loop.ts'
import type { Machine } from '../../src/os/area.ts'
import { probeDevice } from '../../src/os/block/device.ts'
import { format } from '../../src/os/block/format.ts'
import { wipeDevice } from '../../src/os/block/wipe.ts'
import { spawn } from '../../src/supervise/spawn.ts'
import { raidSuperblock } from '../os/block/raid-superblock.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-signatures-'))
afterAll(() => rmSync(folder, { recursive: true }))
const mebibyte = 1 << 20
let count = 0

function image(size: number): string {
  const path = join(folder, `${++count}.img`)
  writeFileSync(path, '')
  truncateSync(path, size)
  return path
}

async function run(argv: string[], stdin?: string): Promise<string> {
  const child = Bun.spawn(argv, { stdin: stdin === undefined ? 'ignore' : Buffer.from(stdin), stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${argv.join(' ')}: ${stderr}${stdout}`)
  return stdout
}

/** The output of blkid for a file, by key. */
async function blkid(path: string): Promise<Record<string, string>> {
  const output = await run(['blkid', '-p', '-o', 'export', path])
  return Object.fromEntries(
    output
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1).replaceAll('\\ ', ' ')]),
  )
}

/** Where our names are not blkid's. */
const theirs: Record<string, string> = { extfs: 'ext4', luks: 'crypto_LUKS', 'lvm2-pv': 'LVM2_member' }

async function bothAgree(path: string): Promise<Record<string, unknown>> {
  const { found } = await probeDevice(block, path)
  const reported = await blkid(path)
  expect({ type: theirs[found?.name ?? ''] ?? found?.name, uuid: found?.uuid, label: found?.label }).toEqual({
    type: reported.TYPE,
    uuid: reported.TYPE === 'iso9660' ? undefined : reported.UUID,
    label: reported.LABEL,
  })
  return { ...found }
}

const made: [name: string, size: number, make: (path: string) => Promise<unknown>][] = [
  ['XFS', 320, (path) => run(['mkfs.xfs', '-q', '-L', 'twelve-chars', path])],
  ['XFS without a label', 320, (path) => run(['mkfs.xfs', '-q', path])],
  ['ext4', 64, (path) => run(['mkfs.ext4', '-q', '-L', 'a label of ext4', path])],
  ['FAT32', 64, (path) => run(['mkfs.vfat', '-F', '32', '-n', 'BOOT', path])],
  ['FAT16', 16, (path) => run(['mkfs.vfat', '-F', '16', '-n', 'SMALL', path])],
  ['FAT12', 2, (path) => run(['mkfs.vfat', '-F', '12', path])],
  ['swap', 16, (path) => run(['mkswap', '-q', '-L', 's-fast', path])],
  ['btrfs', 128, (path) => run(['mkfs.btrfs', '-q', '-L', 'tree', path])],
  [
    'LUKS 2',
    32,
    (path) =>
      run(
        [
          'cryptsetup',
          'luksFormat',
          '-q',
          '--type',
          'luks2',
          '--pbkdf',
          'pbkdf2',
          '--pbkdf-force-iterations',
          '1000',
          '--label',
          'safe',
          path,
          '-',
        ],
        'secret',
      ),
  ],
]

describe('is recognised as blkid does', () => {
  test.each(made)('%s', async (_, size, make) => {
    const path = image(size * mebibyte)
    await make(path)
    await bothAgree(path)
  })

  test('SquashFS and ISO 9660', async () => {
    const content = join(folder, 'content')
    mkdirSync(content)
    writeFileSync(join(content, 'file'), 'x'.repeat(100_000))
    const squash = join(folder, 'root.sqsh')
    await run(['mksquashfs', content, squash, '-quiet', '-no-progress'])
    expect(await bothAgree(squash)).toMatchObject({ name: 'squashfs', filesystemBlockSize: 131072 })
    const iso = join(folder, 'disc.iso')
    await run(['xorriso', '-as', 'mkisofs', '-quiet', '-V', 'metal-iso', '-o', iso, content])
    expect(await bothAgree(iso)).toMatchObject({ name: 'iso9660', label: 'metal-iso' })
  })

  test('a member of a volume group', () =>
    onLoop(async (device) => {
      const lvm = ['--config', 'devices { use_devicesfile=0 } global { locking_type=1 } backup { backup=0 archive=0 }']
      await run(['pvcreate', '-q', ...lvm, '-y', device])
      expect(await bothAgree(device)).toMatchObject({ name: 'lvm2-pv' })
      await run(['vgcreate', '-q', ...lvm, `group${process.pid}`, device])
      expect(await bothAgree(device)).toMatchObject({ name: 'lvm2-pv' })
      await wipeDevice({ kernel: { block } as unknown as Machine['kernel'], log: silent }, device)
      expect((await probeDevice(block, device)).found).toBeUndefined()
    }))

  // mdadm creates an array only with the md driver, which not every kernel has, but reads superblocks without it.
  test.each(['0.90', '1.0', '1.1', '1.2'] as const)('a member of an array with metadata %s, also over a file system', (version) =>
    onLoop(async (device) => {
      if (version === '0.90' || version === '1.0') await run(['mkfs.ext4', '-q', device, '32M'])
      const { offset, bytes } = raidSuperblock(version, 64 * mebibyte)
      const open = await block.openDevice(device, { write: true })
      const page = new Uint8Array(4096)
      page.set(bytes)
      await open.write(offset, page)
      await open.close()
      const examined = await run(['mdadm', '--examine', device])
      expect(examined).toMatch(/Checksum : \w+ - correct/)
      expect(examined).toMatch(version === '0.90' ? /Version : 0\.90/ : /Version : 1\.\d/)
      expect(await bothAgree(device)).toMatchObject({ name: 'linux_raid_member', uuid: '00112233-4455-6677-8899-aabbccddeeff' })
      await wipeDevice({ kernel: { block } as unknown as Machine['kernel'], log: silent }, device)
      expect((await probeDevice(block, device)).found).toBeUndefined()
    }),
  )

  async function onLoop(work: (device: string) => Promise<void>): Promise<void> {
    const loop = attachLoop(image(64 * mebibyte), { autoclear: true })
    try {
      await work(loop.device)
    } finally {
      loop.release()
    }
  }
})

describe('a file system created here', () => {
  test.each(['xfs', 'ext4', 'vfat', 'swap'] as const)('%s is accepted by blkid and the checkers', async (type) => {
    const path = image(100 * mebibyte)
    const loop = attachLoop(path, { autoclear: true })
    try {
      await format({ spawn, kernel: { block } }, loop.device, { type, label: 'STATE' })
    } finally {
      loop.release()
    }
    expect(await bothAgree(path)).toMatchObject({ name: type === 'ext4' ? 'extfs' : type, label: 'STATE' })
    const check = { xfs: ['xfs_repair', '-n', '-f', path], ext4: ['e2fsck', '-fn', path], vfat: ['fsck.vfat', '-n', path], swap: [] }[type]
    if (check.length > 0) await run(check)
  })
})
