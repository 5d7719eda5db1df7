/** Values of the hypervisor VMware, as the machine reads them. */
import { expect, test } from 'bun:test'
import { guestinfoReader } from '../../../src/os/network/guestinfo.ts'
import type { ExitStatus, Spawn } from '../../../src/supervise/spawn.ts'

/** Reads a value by a program that prints something and ends like this. */
function reading(printed: string, status: ExitStatus, exists = true): Promise<string> {
  const spawn: Spawn = () => ({
    pid: 1,
    output: [new Response(printed).body as ReadableStream<Uint8Array>],
    exited: Promise.resolve(status),
    kill() {},
  })
  const read = guestinfoReader({ spawn, files: { exists: () => exists } })
  return read('guestinfo.userdata', new AbortController().signal)
}

test('a value is what was printed, and none is empty', async () => {
  expect(await reading('dGV4dA==', { code: 0, signal: null })).toBe('dGV4dA==')
  expect(await reading('', { code: 1, signal: null })).toBe('')
})

test('a program that was killed in the middle of a value leaves nothing of it in the error', async () => {
  const killed = reading('c2VjcmV0', { code: null, signal: 'SIGKILL' })
  await expect(killed).rejects.toThrow('read guestinfo.userdata: the program was killed before it had the whole value; it is tried again')
  await expect(killed).rejects.not.toThrow('c2VjcmV0')
})

test('an image without the program states the alternatives', async () => {
  await expect(reading('', { code: 0, signal: null }, false)).rejects.toThrow('set talos.config to a URL')
})
