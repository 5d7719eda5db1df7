/** Images from archives and debug containers on a real containerd. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import * as fifo from '../../src/linux/fs/fifo.ts'
import * as files from '../../src/linux/fs/files.ts'
import * as mount from '../../src/linux/fs/mount.ts'
import * as capabilities from '../../src/linux/process/capabilities.ts'
import * as cgroup from '../../src/linux/process/cgroup.ts'
import * as selinux from '../../src/linux/process/selinux.ts'
import { runDebugContainer } from '../../src/os/cri/debug-container.ts'
import type { machine } from '../../src/rpc/messages.ts'
import { imageContents, listImages } from '../../src/supervise/containerd/images.ts'
import { importImage } from '../../src/supervise/containerd/import-image.ts'
import { buildGuest, guestArchive } from '../interop/guest.ts'
import { ContainerdDaemon } from './containerd-daemon.ts'

const containerd = new ContainerdDaemon()
const { folder, client: daemon } = containerd
const channel = daemon.in('system')
const deps = { files, fifo, capabilities, cgroup, selinux }
const name = 'registry.test/guest:v1'
const decoder = new TextDecoder()
/** What a machine has and this host has not: made by these containers, taken away at the end. */
const made = ['/system/run/pipes', '/system/run', '/system', ...cgroupFolders()].filter((path) => !existsSync(path))

beforeAll(() => containerd.start('rootfs.node.sqsh'))

afterAll(async () => {
  await containerd.stop()
  for (const path of made) if (existsSync(path)) rmdirSync(path)
})

/** The control groups above those of the containers, in every hierarchy, innermost first. */
function cgroupFolders(): string[] {
  const mounts = mount.mounts().filter(({ type }) => type === 'cgroup' || type === 'cgroup2')
  return mounts.flatMap(({ target }) => [`${target}/system/debug`, `${target}/system`])
}

type Request = Partial<machine.DebugContainerRunRequest>

/** Requests that a test sends when it likes. */
class Sent implements AsyncIterator<machine.DebugContainerRunRequest> {
  readonly #queue: (Request | undefined)[] = []
  #wake = () => {}

  send(request: Request | undefined): void {
    this.#queue.push(request)
    this.#wake()
  }

  async next(): Promise<IteratorResult<machine.DebugContainerRunRequest>> {
    while (this.#queue.length === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    const value = this.#queue.shift()
    return value ? { done: false, value: value as machine.DebugContainerRunRequest } : { done: true, value: undefined }
  }
}

/** The containers of all calls here. */
const held = new Set<string>()

/** A running container as its caller sees it. */
function started(spec: Partial<machine.DebugContainerRunRequestSpec> = {}) {
  const requests = new Sent()
  const abort = new AbortController()
  const whole = { imageName: name, args: [], env: {}, profile: 1, tty: false, ...spec }
  const replies = runDebugContainer(deps, held, channel, whole, requests, abort.signal)
  let text = ''
  return {
    send: (request: Request | undefined) => requests.send(request),
    say: (line: string) => requests.send({ stdinData: Buffer.from(line) }),
    abort: () => abort.abort(),
    /** Reads until the output holds this. */
    async until(needle: string): Promise<string> {
      while (!text.includes(needle)) {
        const { value, done } = await replies.next()
        if (done || !('stdoutData' in value)) throw new Error(`ended before "${needle}", received: ${text}`)
        text += decoder.decode(value.stdoutData)
      }
      return text
    },
    /** All of its output, and its exit code. */
    async end(): Promise<{ text: string; code: number | undefined }> {
      for await (const reply of replies) {
        if ('exitCode' in reply) return { text, code: reply.exitCode }
        text += decoder.decode(reply.stdoutData)
      }
      return { text, code: undefined }
    },
  }
}

/** What is left of debug containers: in containerd, as pipes and as control groups. */
async function leftovers(): Promise<string[]> {
  const { containers } = await channel.unary('containerd.services.containers.v1.Containers/List', {})
  const { tasks } = await channel.unary('containerd.services.tasks.v1.Tasks/List', {})
  const pipes = readdirSync('/system/run/pipes').filter((file) => file.startsWith('debug-'))
  return [...containers.map(({ id }) => id), ...tasks.map(({ id }) => id), ...pipes]
}

// The program in the image is compiled here.
describe.skipIf(!Bun.which('go'))('debug containers', () => {
  let archive: Uint8Array

  beforeAll(async () => {
    buildGuest(join(folder, 'guest'))
    archive = guestArchive(join(folder, 'guest'), name)
  }, 120_000)

  async function* pieces(bytes: Uint8Array, size = 50_000) {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }

  test('an image is imported from an archive, under its name there', async () => {
    expect(await importImage(channel, pieces(archive), AbortSignal.timeout(60_000))).toBe(name)
    expect(await imageContents(channel, name)).toMatchObject({ entrypoint: ['/guest'], cmd: ['echo'] })
  })

  test('an invalid archive and a truncated one are refused and leave no image', async () => {
    const other = daemon.in('other')
    const noise = Buffer.alloc(100_000, 'x')
    for (const wrong of [noise, archive.subarray(0, archive.length / 2), new Uint8Array(0)])
      await expect(importImage(other, pieces(wrong), AbortSignal.timeout(60_000))).rejects.toMatchObject({ status: 'InvalidArgument' })
    expect(await listImages(other)).toEqual([])
  })

  test('a container reads its input until end-of-file', async () => {
    const guest = started()
    await guest.until('ready hello')
    guest.say('one\n')
    await guest.until('ONE')
    guest.say('two\n')
    guest.send(undefined)
    const { text, code } = await guest.end()
    expect(text).toBe('ready hello\nONE\nTWO\nend of input\n')
    expect(code).toBe(0)
    expect(await leftovers()).toEqual([])
  })

  test('it returns its exit code and its stderr, and accepts arguments and environment', async () => {
    expect(await started({ args: ['/guest', 'exit', '7'] }).end()).toEqual({ text: 'ends with 7\n', code: 7 })
    const guest = started({ env: { GREETING: 'good day' } })
    await guest.until('ready good day')
    guest.send({ signal: 9 })
    expect(await guest.end()).toMatchObject({ code: 137 })
  })

  test('it sees the whole machine below /host', async () => {
    const { text, code } = await started({ args: ['/guest', 'list', '/host/proc/1'] }).end()
    expect(code).toBe(0)
    expect(text).toContain('cmdline\n')
    expect((await started({ args: ['/guest', 'list', '/host'] }).end()).text).toContain('etc\n')
  })

  test('on a terminal it gets its size, and a hangup when the caller disconnects', async () => {
    const sized = started({ tty: true, args: ['/guest', 'size'] })
    await sized.until('terminal')
    sized.send({ termResize: { width: 123, height: 45 } })
    expect((await sized.end()).text).toContain('123 columns, 45 rows')
    const waiting = started({ tty: true, args: ['/guest', 'wait'] })
    await waiting.until('waits')
    waiting.send(undefined)
    expect((await waiting.end()).code).toBe(129)
  })

  test('nothing is left of it when the caller is gone', async () => {
    const guest = started({ args: ['/guest', 'wait'] })
    await guest.until('waits')
    expect(await leftovers()).toHaveLength(4)
    guest.abort()
    await guest.end()
    expect(await leftovers()).toEqual([])
  })

  test('input that nobody reads does not fill memory', async () => {
    const guest = started({ args: ['/guest', 'wait'] })
    await guest.until('waits')
    for (let i = 0; i < 32; i++) guest.send({ stdinData: new Uint8Array(1 << 20) })
    guest.abort()
    await guest.end()
    expect(await leftovers()).toEqual([])
  })

  test('a missing image, and a program that it does not contain, are reported', async () => {
    await expect(started({ imageName: 'registry.test/nobody:v1' }).end()).rejects.toMatchObject({ status: 'NotFound' })
    await expect(started({ args: ['/nothing'] }).end()).rejects.toMatchObject({
      status: 'InvalidArgument',
      message: expect.stringContaining('"/nothing"'),
    })
    expect(await leftovers()).toEqual([])
  })
})
