/** The ISO as it is on a USB stick, for both firmwares: the machine finds its root on the stick. */
import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'

const folder = stateFolder('stick')
const stick = { file: join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'), format: 'raw', bus: 'usb' } as const
const minutes = 60_000
let machine: TestMachine | undefined

afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

test.each(['bios', 'uefi'] as const)(
  'a machine with %s starts from the stick',
  async (kind) => {
    const log = join(folder, `${kind}.log`)
    console.log(`console: ${log}`)
    machine = await TestMachine.start({ console: log, disks: [stick], firmware: kind === 'uefi' ? uefi(folder) : { kind } })
    await machine.shows(/\[stage0\] root file system \/ichor\/[0-9a-f]{16}\.sqsh from \/dev\/sd[a-z]\d? iso9660/, 10 * minutes)
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 10 * minutes)
    expect(machine.console).not.toMatch(/init dies|Kernel panic/)
    await machine.unplug()
  },
  21 * minutes,
)
