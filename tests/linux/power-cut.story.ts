/**
 * STATE when the power is cut, its making and its files: every write to the disk is recorded, and the disk is put together
 * again as it was after each of them, with the last one torn, and with nothing but what was flushed.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as block from '../../src/linux/block/device.ts'
import { type AttachedLoop, attachLoop } from '../../src/linux/block/loop.ts'
import * as files from '../../src/linux/fs/files.ts'
import * as mount from '../../src/linux/fs/mount.ts'
import { probeDevice } from '../../src/os/block/device.ts'
import { format } from '../../src/os/block/format.ts'
import { keepConfig } from '../../src/os/config/keep.ts'
import { spawn } from '../../src/supervise/spawn.ts'

const mebibyte = 1 << 20
const folder = mkdtempSync(join(tmpdir(), 'ichor-power-cut-'))
const [image, base, replayed, log, served, target] = ['disk.img', 'base.img', 'replayed.img', 'log', 'served', 'state'].map((name) =>
  join(folder, name),
) as [string, string, string, string, string, string]

type Call = { offset: number; bytes: Uint8Array } | 'flush'
let making: Call[] = []
let calls: Call[] = []
let device: AttachedLoop | undefined
let server: Bun.Subprocess<'ignore', 'pipe', 'inherit'> | undefined

/** STATE as the configuration's store sees it. */
const onState = {
  readTextIfThere: (path: string) => files.readTextIfThere(path.replace('/system/state', target)),
  writeAtomic: (path: string, data: string | Uint8Array, options?: object) =>
    files.writeAtomic(path.replace('/system/state', target), data, options),
}

const configs = ['version: v1alpha1 # one\n', `version: v1alpha1 # two\n${'# long\n'.repeat(3000)}`, 'version: v1alpha1 # three\n']
const identities = ['nodeId: one\n', 'nodeId: two\n']

function copy(from: string, to: string): void {
  const { exitCode, stderr } = Bun.spawnSync(['cp', '--sparse=always', from, to])
  if (exitCode !== 0) throw new Error(stderr.toString())
}

beforeAll(async () => {
  for (const path of [served, target]) mkdirSync(path)
  writeFileSync(image, '')
  truncateSync(image, 100 * mebibyte)
  making = await record((path) => format({ spawn, kernel: { block } }, path, { type: 'xfs', label: 'STATE' }))
  const mounted = (act: () => Promise<void>) => async (path: string) => {
    mount.mount({ source: path, target, type: 'xfs' })
    await act()
    mount.umount(target)
  }
  await record(
    mounted(async () => {
      await keepConfig(onState, configs[0]!)
      await keepConfig(onState, configs[1]!)
      await onState.writeAtomic('/system/state/node-identity.yaml', identities[0]!)
    }),
  )
  copy(image, base)
  calls = await record(
    mounted(async () => {
      await keepConfig(onState, configs[2]!)
      await onState.writeAtomic('/system/state/node-identity.yaml', identities[1]!)
    }),
  )
}, 120_000)

/** The writes of what is done to the disk. */
async function record(act: (path: string) => Promise<void>): Promise<Call[]> {
  server = Bun.spawn([process.execPath, join(import.meta.dir, 'recording-disk.ts'), image, log, served], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const reader = server.stdout.getReader()
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toContain('ready')
  device = attachLoop(join(served, 'disk'), { autoclear: true })
  await act(device.device)
  device.release()
  device = undefined
  mount.umount(served)
  await server.exited
  return read()
}

function read(): Call[] {
  const bytes = readFileSync(log)
  const found: Call[] = []
  for (let at = 0; at < bytes.length; ) {
    const offset = Number(bytes.readBigUInt64LE(at))
    const length = Number(bytes.readBigUInt64LE(at + 8))
    found.push(length === 0 ? 'flush' : { offset, bytes: bytes.subarray(at + 16, at + 16 + length) })
    at += 16 + length
  }
  return found
}

afterAll(async () => {
  mount.umountTree(folder)
  device?.release()
  server?.kill()
  rmSync(folder, { recursive: true })
})

/** Puts a disk together from what it held before, empty by default, and these writes. */
function replay(writes: readonly Call[], before?: string): void {
  if (before) copy(before, replayed)
  else {
    writeFileSync(replayed, '')
    truncateSync(replayed, 100 * mebibyte)
  }
  const open = openSync(replayed, 'r+')
  for (const call of writes) if (call !== 'flush') writeSync(open, call.bytes, 0, call.bytes.length, call.offset)
  closeSync(open)
}

/** What is found on a disk that holds what it held before and these writes. */
function found(writes: readonly Call[]): Record<string, string | undefined> {
  replay(writes, base)
  const loop = attachLoop(replayed, { autoclear: true })
  try {
    mount.mount({ source: loop.device, target, type: 'xfs' })
    try {
      const text = (name: string) => (existsSync(join(target, name)) ? readFileSync(join(target, name), 'utf8') : undefined)
      return { config: text('config.yaml'), previous: text('config.yaml.previous'), identity: text('node-identity.yaml') }
    } finally {
      mount.umount(target)
    }
  } finally {
    loop.release()
  }
}

/** Whole files only, of the old or the new, and each in its turn. */
function expectOldOrNew({ config, previous, identity }: ReturnType<typeof found>): number {
  expect([configs[1], configs[2]]).toContain(config)
  expect([configs[0], configs[1]]).toContain(previous)
  expect(identities).toContain(identity!)
  // The one before is kept beside it first, and the identity is written when the configuration is.
  if (config === configs[2]) expect(previous).toBe(configs[1])
  if (identity === identities[1]) expect(config).toBe(configs[2])
  return Number(previous === configs[1]) + Number(config === configs[2]) + Number(identity === identities[1])
}

test('after every write, also with the last one torn, each file has its old or its new contents', () => {
  expect(calls.filter((call) => call !== 'flush').length).toBeGreaterThan(5)
  expect(calls.filter((call) => call === 'flush').length).toBeGreaterThan(5)
  let progress = 0
  for (const [index, call] of calls.entries()) {
    if (call === 'flush') continue
    const before = calls.slice(0, index)
    for (const length of [512, Math.floor(call.bytes.length / 1024) * 512]) {
      if (length > 0 && length < call.bytes.length)
        expectOldOrNew(found([...before, { offset: call.offset, bytes: call.bytes.subarray(0, length) }]))
    }
    const now = expectOldOrNew(found([...before, call]))
    expect(now).toBeGreaterThanOrEqual(progress)
    progress = now
  }
  expect(progress).toBe(3)
}, 120_000)

test('any unflushed write may be missing', () => {
  let flushed = 0
  for (const [index, call] of calls.entries()) {
    if (call !== 'flush') continue
    const pending = calls.slice(flushed, index)
    // All but one of those that were on their way, and none of them.
    for (const left of pending) expectOldOrNew(found([...calls.slice(0, flushed), ...pending.filter((each) => each !== left)]))
    expectOldOrNew(found(calls.slice(0, flushed)))
    flushed = index
  }
}, 120_000)

/** Whether a file system counts as made, which it may only when it is whole: it is mounted then. */
async function isMade(writes: readonly Call[]): Promise<boolean> {
  replay(writes)
  const loop = attachLoop(replayed, { autoclear: true })
  try {
    const { found } = await probeDevice(block, loop.device)
    if (!found) return false
    expect(found.name).toBe('xfs')
    mount.mount({ source: loop.device, target, type: 'xfs' })
    mount.umount(target)
    return true
  } finally {
    loop.release()
  }
}

test('an interrupted mkfs leaves no file system, which is created again, or a usable one', async () => {
  const writes = making.filter((call) => call !== 'flush')
  expect(writes.length).toBeGreaterThan(5)
  let made = false
  // mkfs.xfs flushes once, when it is done: only what was written in its order is looked at.
  for (const [index, call] of writes.entries()) {
    const before = writes.slice(0, index)
    await isMade([...before, { offset: call.offset, bytes: call.bytes.subarray(0, 512) }])
    made = await isMade([...before, call])
  }
  expect(made).toBe(true)
}, 120_000)
