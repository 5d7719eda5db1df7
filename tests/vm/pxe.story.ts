/** A machine without a disk that starts from the network: the interface's boot loader fetches kernel and initramfs, the root is inside. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dist, forgetState, stateFolder, TestMachine } from './machine.ts'

const minutes = 60_000
const folder = stateFolder('pxe')
const served = join(folder, 'served')
const image = process.env.ICHOR_VM_IMAGE ?? dist
let machine: TestMachine

beforeAll(async () => {
  mkdirSync(served, { recursive: true })
  for (const name of ['ichor-vmlinuz', 'ichor-initramfs']) {
    rmSync(join(served, name), { force: true })
    symlinkSync(join(image, name), join(served, name))
  }
  const line = readFileSync(join(image, 'ichor-cmdline'), 'utf8').trim()
  const from = 'tftp://10.0.2.2'
  const script = ['#!ipxe', `kernel ${from}/ichor-vmlinuz initrd=ichor-initramfs ${line}`, `initrd ${from}/ichor-initramfs`, 'boot', '']
  writeFileSync(join(served, 'boot.ipxe'), script.join('\n'))
  machine = await TestMachine.start({
    console: join(folder, 'pxe.log'),
    memory: 3072,
    pxe: { folder: served, file: 'boot.ipxe' },
  })
  console.log(`console: ${join(folder, 'pxe.log')}`)
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

test(
  'kernel and initramfs come over the network, and the machine starts from them',
  async () => {
    await machine.shows(/Linux version/, 20 * minutes)
    await machine.shows(/service=apid .*"Health check successful"/, 10 * minutes)
    expect(machine.console).not.toMatch(/Kernel panic/)
  },
  31 * minutes,
)

test(
  'it waits in maintenance and answers its API',
  async () => {
    const version = await machine.until(
      'the API answers',
      async () => {
        const answer = await machine.insecurely('version')
        if (answer.code !== 0) throw new Error(answer.stderr)
        return answer
      },
      5 * minutes,
    )
    expect(version.stdout).toMatch(/Server:[\s\S]*v1\.13\.\d+/)
  },
  6 * minutes,
)
