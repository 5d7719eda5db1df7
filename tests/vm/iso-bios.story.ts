/** The ISO on a machine with BIOS: GRUB starts it from CD, up to maintenance. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { dist, forgetState, stateFolder, TestMachine } from './machine.ts'

const folder = stateFolder('iso-bios')
const minutes = 60_000
let machine: TestMachine

beforeAll(async () => {
  const log = join(folder, 'console.log')
  console.log(`console: ${log}`)
  const cdrom = join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso')
  machine = await TestMachine.start({ console: log, cdrom, firmware: { kind: 'bios' } })
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

test(
  'stage 0 finds the root on the CD',
  async () => {
    await machine.shows(/\[stage0\] root file system \/ichor\/[0-9a-f]{16}\.sqsh from \/dev\/sr0 iso9660/, 10 * minutes)
  },
  11 * minutes,
)

test(
  'the machine waits for a configuration, and its API answers',
  async () => {
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 10 * minutes)
    await machine.until('the API answers', async () => (await machine.insecurely('version')).stdout.includes('Server:'), 10 * minutes)
    expect(machine.console).not.toMatch(/init dies|Kernel panic/)
  },
  21 * minutes,
)
