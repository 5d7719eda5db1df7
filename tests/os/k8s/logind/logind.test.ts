import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../../src/cosi/log.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { Logind } from '../../../../src/os/k8s/logind/logind.ts'
import { BusClient } from './client.ts'

const never = new AbortController().signal
const minutes = 60_000

/** Locks whose holder the test is. */
class Locks {
  readonly made: { released(): void; closed: boolean; handedOver: boolean }[] = []
  makeLockPipe = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const lock = { released: resolve, closed: false, handedOver: false }
    this.made.push(lock)
    const close = () => {
      lock.closed = true
      resolve()
    }
    const handedOver = () => {
      lock.handedOver = true
    }
    return { writer: 99, released: promise, close, handedOver }
  }
}

let folder = ''
let path = ''
let locks: Locks
let logind: Logind
let sent: (readonly number[])[]
/** Resolves when the time of a wait is over; of each wait, with its limit. */
let sleeps: { ms: number; over(): void }[]
const clients: BusClient[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'logind-'))
  path = join(folder, 'dbus', 'system_bus_socket')
  locks = new Locks()
  sent = []
  sleeps = []
  const socket = {
    peerCredentials: () => ({ pid: 1, uid: process.getuid?.() ?? 0, gid: 0 }),
    // The descriptor itself is sent in tests/linux/net/socket.test.ts.
    sendDescriptors: (fd: number, bytes: Uint8Array, descriptors: readonly number[]) => {
      sent.push(descriptors)
      writeSync(fd, bytes)
    },
  }
  const clock = {
    sleep: (ms: number, signal: AbortSignal = never) =>
      new Promise<void>((over) => {
        sleeps.push({ ms, over })
        signal.addEventListener('abort', () => over())
      }),
  }
  logind = new Logind({ socket, fifo: locks, files }, silent, clock)
  logind.listen(30_000, path)
})
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
  logind.close()
  rmSync(folder, { recursive: true })
})

async function kubelet(): Promise<BusClient> {
  const client = await BusClient.open(path)
  clients.push(client)
  await client.startAsKubelet()
  return client
}

test('a kubelet that ends its pods delays the shutdown until it gives its lock back', async () => {
  const client = await kubelet()
  expect(sent).toEqual([[99]])
  expect(locks.made[0]?.handedOver).toBe(true)
  const outcome = logind.prepareForShutdown(40_000, never)
  expect(await client.signalled(1)).toEqual([true])
  expect(client.signals[0]).toMatchObject({ path: '/org/freedesktop/login1', sender: 'org.freedesktop.login1' })
  locks.made[0]?.released()
  expect(await outcome).toBe('released')
  expect(sleeps.map(({ ms }) => ms)).toEqual([40_000])
})

test('only the own user may connect', () => {
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('without a kubelet nothing is waited for', async () => {
  expect(await logind.prepareForShutdown(minutes, never)).toBe('no lock')
})

test('a kubelet that keeps its lock is waited for until the time is over', async () => {
  await kubelet()
  const outcome = logind.prepareForShutdown(40_000, never)
  sleeps[0]?.over()
  expect(await outcome).toBe('timeout')
})

test('a kubelet that holds a lock and listens to nothing is not waited for', async () => {
  const client = await BusClient.open(path)
  clients.push(client)
  await client.login1('Inhibit', ['shutdown', 'kubelet', '', 'delay'])
  expect(await logind.prepareForShutdown(minutes, never)).toBe('no lock')
})

test('a kubelet that dies gives its lock back', async () => {
  const client = await kubelet()
  locks.made[0]?.released()
  client.close()
  expect(await logind.prepareForShutdown(minutes, never)).toBe('no lock')
})

test('the lock of a kubelet that was restarted replaces the one before', async () => {
  const first = await kubelet()
  first.close()
  const second = await kubelet()
  expect(locks.made.map(({ closed }) => closed)).toEqual([true, false])
  const outcome = logind.prepareForShutdown(minutes, never)
  expect(await second.signalled(1)).toEqual([true])
  locks.made[1]?.released()
  expect(await outcome).toBe('released')
})

test('a kubelet that starts during the shutdown gets no lock', async () => {
  const client = await kubelet()
  const outcome = logind.prepareForShutdown(minutes, never)
  await client.signalled(1)
  const restarted = await BusClient.open(path)
  clients.push(restarted)
  expect(await restarted.login1('Inhibit', ['shutdown', 'kubelet', '', 'delay'])).toMatchObject({
    type: 'error',
    errorName: 'org.freedesktop.login1.OperationInProgress',
  })
  locks.made[0]?.released()
  expect(await outcome).toBe('released')
})

test('a shutdown that was called off is announced, and locks may be taken again', async () => {
  const client = await kubelet()
  const abort = new AbortController()
  const outcome = logind.prepareForShutdown(minutes, abort.signal)
  abort.abort(new Error('taken over'))
  await expect(outcome).rejects.toThrow('taken over')
  logind.resume()
  expect(await client.signalled(2)).toEqual([true, false])
  expect((await client.login1('Inhibit', ['shutdown', 'kubelet', '', 'delay'])).type).toBe('return')
})

test('the delay is what the kubelet needs, and at least 20 minutes', async () => {
  const client = await kubelet()
  const property = async (name: string) => (await client.login1('Get', ['org.freedesktop.login1.Manager', name])).body?.[0]?.value
  expect(await property('InhibitDelayMaxUSec')).toEqual({ type: 't', value: 1_200_000_000n })
  expect(await property('PreparingForShutdown')).toEqual({ type: 'b', value: false })
  logind.listen(30 * minutes, path)
  expect(await property('InhibitDelayMaxUSec')).toEqual({ type: 't', value: 1_800_000_000n })
})

test.each([
  ['a method that is not served', 'Reboot', ['false'], undefined, 'UnknownMethod'],
  ['another object', 'Inhibit', ['shutdown', 'me', '', 'delay'], '/org/freedesktop/login1/seat', 'UnknownObject'],
  ['a lock that blocks', 'Inhibit', ['shutdown', 'me', '', 'block'], undefined, 'NotSupported'],
  ['a lock on sleep', 'Inhibit', ['sleep', 'me', '', 'delay'], undefined, 'NotSupported'],
  ['a lock without arguments', 'Inhibit', [], undefined, 'InvalidArgs'],
  ['a property that is not served', 'Get', ['org.freedesktop.login1.Manager', 'IdleHint'], undefined, 'UnknownProperty'],
])('%s is an error', async (_, member, values, object, error) => {
  const client = await kubelet()
  expect(await client.login1(member, values, object)).toMatchObject({ type: 'error', errorName: `org.freedesktop.DBus.Error.${error}` })
})

test('a client that breaks the protocol is disconnected, and the others stay', async () => {
  const good = await kubelet()
  const bad = await BusClient.open(path)
  clients.push(bad)
  bad.write('nonsense that is no message')
  await bad.closed
  expect((await good.bus('Ping')).type).toBe('return')
})

test('seventeen clients are one too many', async () => {
  for (let count = 0; count < 16; count++) clients.push(await BusClient.open(path))
  await expect(BusClient.open(path)).rejects.toThrow('the server closed the connection')
})

test('a client has a limited number of match rules, and takes back what it added', async () => {
  const client = await kubelet()
  for (let count = 1; count < 64; count++) expect((await client.bus('AddMatch', `member='M${count}'`)).type).toBe('return')
  expect((await client.bus('AddMatch', "member='M64'")).errorName).toBe('org.freedesktop.DBus.Error.LimitsExceeded')
  expect((await client.bus('RemoveMatch', "member='M1'")).type).toBe('return')
  expect((await client.bus('RemoveMatch', "member='M1'")).errorName).toBe('org.freedesktop.DBus.Error.MatchRuleNotFound')
})
