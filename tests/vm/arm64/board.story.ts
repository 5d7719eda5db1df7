/**
 * A disk for a Raspberry Pi 4 in the emulated board: U-Boot finds the boot loader, and the system starts from the SD medium.
 *
 *   ICHOR_BOARD_OVERLAY=overlay ICHOR_VM_IMAGE=board bun test ./tests/vm/arm64/board.story.ts
 *
 * Both folders are made as docs/images.md describes. The board is in QEMU 9 and newer (ICHOR_BOARD_EMULATOR names it, default
 * qemu-system-aarch64), which stands in for the firmware: it executes U-Boot and hands over the device tree. What it does not emulate
 * is taken out of that tree: graphics, whose registers abort every access, and the pins of the firmware, which switch the voltage of
 * media. It has no network.
 */
import { afterAll, expect, test } from 'bun:test'
import { copyFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { dist, forgetState, stateFolder, TestMachine } from '../machine.ts'

const folder = stateFolder('board')
const minutes = 60_000
const emulator = process.env.ICHOR_BOARD_EMULATOR ?? 'qemu-system-aarch64'
const overlay = process.env.ICHOR_BOARD_OVERLAY ?? ''
const tree = join(folder, 'board.dtb')
let machine: TestMachine | undefined

function missing(): string | undefined {
  if (overlay === '') return 'ICHOR_BOARD_OVERLAY names no folder with the files of the board'
  if (!Bun.which('fdtput')) return 'needs fdtput: install device-tree-compiler'
  if (!Bun.which(emulator) || !Bun.spawnSync([emulator, '-machine', 'help']).stdout.includes('raspi4b'))
    return 'needs QEMU 9 or newer, which has raspi4b: Debian 12 has it in its backports'
  return undefined
}

const why = missing()
if (why) console.log(`skipped: ${why}`)

/** Nodes whose registers are not emulated. */
const absent = [
  ...['interrupt-controller@7ef00100', 'clock@7ef00000', 'hdmi@7ef00700', 'hdmi@7ef05700', 'i2c@7ef04500', 'i2c@7ef09500'],
  ...['avs-monitor@7d5d2000', 'pixelvalve@7e206000', 'pixelvalve@7e207000', 'pixelvalve@7e20a000', 'pixelvalve@7e216000'],
  ...['pixelvalve@7ec12000', 'hvs@7e400000', 'vec@7ec13000'],
].map((name) => `/soc/${name}`)

/** What the firmware does with the settings of the disk, and what the emulator lacks. */
function changeTree(): void {
  const change = (...args: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(['fdtput', ...args])
    if (exitCode !== 0) throw new Error(`fdtput ${args.join(' ')}: ${stderr}`)
  }
  copyFileSync(join(overlay, 'artifacts/arm64/firmware/boot/bcm2711-rpi-4-b.dtb'), tree)
  // dtoverlay=disable-bt of the disk's config.txt: the serial port is the console's.
  change('-r', tree, '/soc/serial@7e201000/bluetooth')
  for (const node of absent) change('-t', 's', tree, node, 'status', 'disabled')
  // The emulator has the medium where the board has its radio.
  for (const property of ['mmc-pwrseq', 'non-removable']) change('-d', tree, '/soc/mmc@7e300000', property)
  change('-r', tree, '/soc/mmc@7e300000/wifi@1')
  for (const property of ['vqmmc-supply', 'vmmc-supply']) change('-d', tree, '/emmc2bus/mmc@7e340000', property)
}

afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

test.skipIf(why !== undefined)(
  'the disk starts the system in the board',
  async () => {
    changeTree()
    const medium = join(folder, 'medium.img')
    copyFileSync(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-arm64.raw'), medium)
    // The sizes of SD media are powers of two.
    truncateSync(medium, 4 * 2 ** 30)
    const console = join(folder, 'console.log')
    const firmware = join(folder, 'firmware.log')
    machine = await TestMachine.start({
      console,
      emulator: () => [
        ...[emulator, '-machine', 'raspi4b', '-display', 'none', '-monitor', 'none'],
        ...['-kernel', join(overlay, 'artifacts/arm64/u-boot/rpi_generic/u-boot.bin'), '-dtb', tree],
        ...['-drive', `if=sd,format=raw,cache=unsafe,file=${medium}`],
        ...['-serial', `file:${console}`, '-serial', `file:${firmware}`],
      ],
    })
    await machine.shows(/Machine model: Raspberry Pi 4 Model B/, 30 * minutes)
    expect(await Bun.file(firmware).text()).toMatch(/Booting \/efi\\boot\\bootaa64\.efi[\s\S]*EFI stub: Booting Linux Kernel/i)
    await machine.shows(/\[stage0\] root file system .*mmcblk/, 30 * minutes)
    await machine.shows(/Ichor v\d/, 30 * minutes)
    await machine.shows(/service=containerd .*"Health check successful"/, 60 * minutes)
  },
  150 * minutes,
)
