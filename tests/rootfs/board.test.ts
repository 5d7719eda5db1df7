/** Disks for boards: the files of their firmware lie beside the boot loader, judged by the tools of others where they are installed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { targets } from '../../rootfs/build/target.ts'
import { writeDisk } from '../../rootfs/image/disk.ts'
import { boardOf } from '../../rootfs/image/overlay/overlay.ts'
import type { Release } from '../../rootfs/image/release.ts'
import { layerSegments } from '../../src/oci/layer.ts'
import { plainLayer, writeImageArchive } from '../../src/programs/talosctl/archive/image-archive.ts'
import { line, uki, writeProducts } from '../programs/factory/built.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-board-'))
const overlay = join(folder, 'overlay')
const contents: Readonly<Record<string, string>> = {
  'artifacts/arm64/firmware/boot/start4.elf': 'the firmware',
  'artifacts/arm64/firmware/boot/bcm2711-rpi-4-b.dtb': 'the device tree',
  'artifacts/arm64/firmware/boot/overlays/disable-bt.dtbo': 'an overlay of the device tree',
  'artifacts/arm64/u-boot/rpi_generic/u-boot.bin': 'U-Boot',
  'artifacts/arm64/u-boot/rpi_5/u-boot.bin': 'another U-Boot',
  'installers/rpi_generic': '#!/bin/sh\nexit 1\n',
}
let release: Release

beforeAll(async () => {
  for (const [path, content] of Object.entries(contents)) {
    mkdirSync(dirname(join(overlay, path)), { recursive: true })
    writeFileSync(join(overlay, path), content)
  }
  mkdirSync(join(folder, 'products'))
  release = await writeProducts(join(folder, 'products'), uki(line), 'arm64')
})
afterAll(() => rmSync(folder, { recursive: true }))

const request = (image: string, options: Record<string, string> = {}) => boardOf({ name: 'rpi_generic', image, options }, targets.arm64)
const textsOf = async (image: string, options?: Record<string, string>) =>
  new Map([...(await request(image, options)).files].map(([path, content]) => [path, content.toString()]))

test('the artifacts of an overlay become files of the partition, with the settings of the firmware', async () => {
  const files = await textsOf(overlay, { configTxtAppend: 'dtparam=poe_fan_temp0=50000' })
  expect([...files.keys()].sort()).toEqual(
    ['bcm2711-rpi-4-b.dtb', 'config.txt', 'overlays/disable-bt.dtbo', 'start4.elf', 'u-boot.bin'].sort(),
  )
  expect(files.get('u-boot.bin')).toBe('U-Boot')
  expect(files.get('config.txt')).toMatch(/^kernel=u-boot\.bin$/m)
  expect(files.get('config.txt')).toEndWith('\ndtparam=poe_fan_temp0=50000\n')
  expect((await textsOf(overlay, { configTxt: 'kernel=other' })).get('config.txt')).toBe('kernel=other\n')
})

test('an image in an archive is the same as a folder', async () => {
  const paths = Object.entries(contents).map(([path, content]) => ({ path, type: 'file' as const, mode: 0o755, size: content.length }))
  const layer = layerSegments(paths.map((each) => ({ ...each, source: join(overlay, each.path) })))
  const path = join(folder, 'overlay.tar')
  await writeImageArchive(path, { arch: 'arm64', layers: [await plainLayer(layer)], config: { config: {} }, annotations: {} })
  expect(await textsOf(path)).toEqual(await textsOf(overlay))
})

test.each([
  ['no firmware', 'artifacts/arm64/firmware/boot/start4.elf', 'it has no firmware'],
  ['no U-Boot', 'artifacts/arm64/u-boot/rpi_generic/u-boot.bin', 'u-boot.bin" is missing'],
  ['nothing', 'artifacts', 'there is no'],
])('an overlay with %s is refused', async (name, missing, reason) => {
  const other = join(folder, name)
  cpSync(overlay, other, { recursive: true })
  rmSync(join(other, missing), { recursive: true })
  await expect(request(missing === 'artifacts' ? join(other, 'nowhere.tar') : other)).rejects.toThrow(reason)
})

test('an overlay that would replace the boot loader is refused', async () => {
  const other = join(folder, 'greedy')
  cpSync(overlay, other, { recursive: true })
  mkdirSync(join(other, 'artifacts/arm64/firmware/boot/EFI'))
  writeFileSync(join(other, 'artifacts/arm64/firmware/boot/EFI/x.efi'), '')
  await expect(request(other)).rejects.toThrow('"EFI/x.efi" lies where the system keeps its own boot files')
})

const tools = ['sgdisk', 'mtype', 'mdir'].map((name) => Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin:/sbin` }))
const [sgdisk, mtype, mdir] = tools
if (tools.includes(null)) console.log('skipped: disks for boards are not judged, which needs gdisk and mtools')

test.skipIf(tools.includes(null))(
  'the first partition of a disk is one that the firmware and UEFI start from',
  async () => {
    const path = join(folder, 'board.raw')
    await writeDisk(path, release, { firmware: 'uefi', board: await request(overlay) })
    const output = (...argv: (string | null | undefined)[]) => {
      const { stdout, stderr } = Bun.spawnSync(argv.map((each) => each ?? ''))
      return `${stdout}${stderr}`
    }
    expect(output(sgdisk, '-v', path)).toContain('No problems found')
    expect(output(sgdisk, '-i', '1', path)).toMatch(/EFI system partition[\s\S]*First sector: 2048/)
    // Its first partition, for mtools.
    const partition = `${path}@@1M`
    expect(output(mtype, '-i', partition, '::config.txt')).toContain('kernel=u-boot.bin')
    expect(output(mtype, '-i', partition, '::u-boot.bin')).toBe('U-Boot')
    expect(output(mdir, '-b', '-/', '-i', partition, '::')).toMatch(/EFI\/BOOT\/BOOTAA64\.EFI/i)
  },
  30_000,
)
