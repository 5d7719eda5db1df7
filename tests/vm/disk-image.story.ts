/** The disk image as it is given to a virtual machine: it starts from slot A and makes its volumes on the rest of the disk. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'

const folder = stateFolder('disk-image')
const minutes = 60_000
let machine: TestMachine

beforeAll(async () => {
  const [log, file] = [join(folder, 'console.log'), join(folder, 'disk.qcow2')]
  console.log(`console: ${log}`)
  copyFileSync(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.qcow2'), file)
  const disks = [{ file, format: 'qcow2', bus: 'virtio' } as const]
  // What it was installed from may still be in the drive, and hold the very same root.
  const cdrom = join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso')
  machine = await TestMachine.start({ console: log, disks, cdrom, firmware: uefi(folder) })
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

test(
  'stage 0 finds the root on the EFI partition of the disk',
  async () => {
    await machine.shows(/\[stage0\] root file system \/ichor\/[0-9a-f]{16}\.sqsh from \/dev\/vda1 vfat/, 10 * minutes)
  },
  11 * minutes,
)

test(
  'the machine is installed already: it waits for a configuration only',
  async () => {
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 10 * minutes)
    const partitions = await machine.until(
      'the partitions are known',
      async () => {
        const { stdout } = await machine.insecurely('get', 'discoveredvolumes')
        return /vda1 .*vfat.* EFI/.test(stdout) && stdout
      },
      10 * minutes,
    )
    expect(partitions).toMatch(/vda2 .* META/)
    expect(machine.console).not.toMatch(/init dies|Kernel panic/)
  },
  21 * minutes,
)
