/** The ISO for arm64, made by `./mkimage.sh --arch arm64 --only iso`, on an emulated machine with edk2: to maintenance and onto its disk. */
import { afterAll, beforeAll, test } from 'bun:test'
import { join } from 'node:path'
import { disk, dist, forgetState, stateFolder, TestMachine } from '../machine.ts'
import { oneNode } from '../one-node.ts'
import { arm64Emulator } from './emulator.ts'

const folder = stateFolder('arm64')
const minutes = 60_000
const console_ = join(folder, 'console.log')
const system = disk(join(folder, 'system.img'), 12 * 1024)
let machine: TestMachine

beforeAll(async () => {
  const cdrom = join(dist, 'ichor-arm64.iso')
  const emulator = arm64Emulator({ folder, console: console_, disk: system.file, cdrom, memory: 4096 })
  machine = await TestMachine.start({ console: console_, emulator })
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

test(
  'firmware, boot loader, kernel and stage 0 lead to maintenance, and the API answers',
  async () => {
    await machine.shows(/verity: sha256 using implementation "sha256-(ce|arm64)/, 10 * minutes)
    await machine.shows(/service=apid .*"Health check successful"/, 10 * minutes)
    await machine.outputs(() => machine.insecurely('version'), /Server:[\s\S]*linux\/arm64/, 5 * minutes)
    await machine.outputs(() => machine.insecurely('get', 'links'), /enp0s\d+ .* up /, 5 * minutes)
  },
  31 * minutes,
)

test(
  'it is installed and starts from its disk',
  async () => {
    await oneNode(folder, '--install-disk', '/dev/vda')
    await machine.takes(join(folder, 'controlplane.yaml'), 5 * minutes)
    machine.forget()
    await machine.shows(/\[stage0\] root file system \S+ from \/dev\/vda1/, 30 * minutes)
    await machine.shows(/service=machined .*"Health check successful"/, 10 * minutes)
  },
  46 * minutes,
)
