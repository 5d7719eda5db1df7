/** Media that are not what they were: each is refused with one line that states the cause and the remedy. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { closeSync, copyFileSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { readIso } from '../rootfs/read-iso.ts'
import { dist, forgetState, stateFolder, TestMachine } from './machine.ts'

const folder = stateFolder('tampered')
const good = join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso')
const cdrom = join(folder, 'tampered.iso')
const minutes = 60_000
const block = 4096

/** Where the root lies in the image, and where the record of its name does. */
let root: { offset: number; size: number; record: number }
let machine: TestMachine | undefined

beforeAll(() => {
  const image = readFileSync(good)
  const [path, content] = [...readIso(image).files].find(([each]) => each.startsWith('ichor/'))!
  const name = `${path.slice('ichor/'.length).toUpperCase()};1`
  root = { offset: content.byteOffset - image.byteOffset, size: content.length, record: image.indexOf(name) - 33 }
})
afterEach(async () => {
  await machine?.unplug()
  rmSync(cdrom, { force: true })
})
afterAll(() => forgetState(folder))

/** Starts a machine from a copy of the medium with other bytes here and there. */
async function startWith(name: string, changes: readonly { at: number; bytes: Uint8Array }[]): Promise<TestMachine> {
  copyFileSync(good, cdrom)
  const file = openSync(cdrom, 'r+')
  for (const { at, bytes } of changes) writeSync(file, bytes, 0, bytes.length, at)
  closeSync(file)
  const log = join(folder, `${name}.log`)
  console.log(`console: ${log}`)
  machine = await TestMachine.start({ console: log, cdrom, memory: 1024 })
  return machine
}

const wayOut = /write the medium again, or download the image again/

test(
  'a byte changed in the first block stops the machine before anything of it is run',
  async () => {
    const it = await startWith('first-block', [{ at: root.offset + 200, bytes: Buffer.from('changed') }])
    const [line] = await it.shows(/the machine cannot start: the root file system .* has been changed: .*/, 10 * minutes)
    expect(line).toMatch(wayOut)
    expect(line).toContain('on /dev/sr0')
    expect(it.console).not.toContain('[ichor]')
  },
  11 * minutes,
)

test(
  'a truncated root stops the machine',
  async () => {
    const size = Buffer.alloc(8)
    size.writeUInt32LE(root.size - 10 * block, 0)
    size.writeUInt32BE(root.size - 10 * block, 4)
    const it = await startWith('truncated', [{ at: root.record + 10, bytes: size }])
    const [line] = await it.shows(/the machine cannot start: the root file system .* is truncated.*/, 10 * minutes)
    expect(line).toMatch(wayOut)
  },
  11 * minutes,
)

test(
  'bytes changed further in are found when they are first read, and nothing goes on with them',
  async () => {
    const every = 64 * block
    const changes = Array.from({ length: Math.floor(root.size / every) - 1 }, (_, at) => ({
      at: root.offset + (at + 1) * every + 99,
      bytes: Buffer.from('changed'),
    }))
    const it = await startWith('further-in', changes)
    await it.shows(/verity: \S+: (data|metadata) block \d+ is corrupted/, 10 * minutes)
    await it.shows(wayOut, minutes)
    await it.shows(/dm-verity device corrupted|the machine cannot start/, 5 * minutes)
    expect(it.console).not.toMatch(/port=50000/)
  },
  17 * minutes,
)

test(
  'a root that is not the one the kernel came with is not even tried',
  async () => {
    const it = await startWith('another', [{ at: root.record + 33, bytes: Buffer.from('0123456789ABCDEF') }])
    const [line] = await it.shows(/the machine cannot start: no disk, stick or CD holds \/ichor\/.*/, 15 * minutes)
    expect(line).toContain('plug in the medium that kernel and initramfs came from')
  },
  16 * minutes,
)
