/** A machine whose disk has sectors of 4 KiB: installed, started from it, with its volumes on it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { asAdmin, configure, generateControlPlane, says, volumeIs } from './control-plane.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'

const folder = stateFolder('large-sectors')
const minutes = 60_000
let machine: TestMachine

beforeAll(async () => {
  const log = join(folder, 'console.log')
  console.log(`console: ${log}`)
  machine = await TestMachine.start({
    console: log,
    cdrom: join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'),
    disks: [{ ...disk(join(folder, 'disk.img'), 8 * 1024), sectorSize: 4096 }],
    firmware: uefi(folder),
    restarts: true,
  })
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

test(
  'it is installed, and firmware, stage 0 and init find what they need on it',
  async () => {
    await machine.shows(/service=apid .*"Health check successful"/, 15 * minutes)
    const disks = await says(machine, () => machine.insecurely('get', 'disks', 'vda', '-o', 'yaml'), /dev_path: \/dev\/vda/)
    expect(disks).toMatch(/sector_size: 4096/)
    await configure(machine, folder, await generateControlPlane(folder))
    await machine.shows(/sequence=install phase=stopEverything /, 25 * minutes)
    machine.forget()
    await machine.shows(/\[stage0\] root file system \/ichor\/[0-9a-f]{16}\.sqsh from \/dev\/vda1 vfat/, 20 * minutes)
    await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
  },
  90 * minutes,
)

test(
  'its volumes are made on it',
  async () => {
    for (const id of ['META', 'STATE', 'EPHEMERAL']) await volumeIs(machine, folder, id)
    const found = await says(machine, () => asAdmin(machine, folder, ['get', 'discoveredvolumes', 'vda', '-o', 'yaml']), /vda/)
    expect(found).toMatch(/sector_size: 4096/)
    expect(machine.console).not.toMatch(/init dies|Kernel panic/)
  },
  60 * minutes,
)
