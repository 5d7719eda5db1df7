/**
 * The clock's synchronizer with real servers: chrony, each instance following a test clock that is off. This machine's clock
 * is not set: chrony keeps its own beside it (-x), and the adjustments of the synchronizer are recorded.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLogger, type LogEntry } from '../../src/cosi/log.ts'
import * as time from '../../src/linux/system/time.ts'
import { type LedClock, Synchronizer } from '../../src/os/time/ntp/synchronizer.ts'
import { sourceOf, steadyTime } from '../../src/os/time/sources.ts'
import { ntpMode, readNtp, toNtpTime, writeNtp } from '../../src/wire/ntp.ts'
import { freePort } from '../support/free-port.ts'
import { eventually, program } from './lab/namespaces.ts'

const chronyd = program('chronyd')
if (!chronyd) console.log('skipped: needs chronyd: bun tests/network/prepare.ts installs it')
const timeout = 240_000
/** By how much a server may be misunderstood, in seconds: half of what a busy machine takes to answer. */
const haste = 0.15

let folder: string
let daemons: Bun.Subprocess[] = []
let clocks: { close(): void }[] = []
let stop: AbortController

beforeEach(() => {
  folder = mkdtempSync('/run/ichor-time-')
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  for (const daemon of daemons) {
    daemon.kill('SIGKILL')
    await daemon.exited
  }
  for (const clock of clocks) clock.close()
  daemons = []
  clocks = []
  rmSync(folder, { recursive: true, force: true })
})

/** A clock that is off by so many seconds, served over NTP; its port. */
async function clockOff(seconds: number): Promise<number> {
  const now = () => toNtpTime(time.clock('realtime') + BigInt(Math.round(seconds * 1e9)))
  const socket = await Bun.udpSocket({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(server, datagram, port, address) {
        const receiveTime = now()
        const { transmitTime: originTime, poll } = readNtp(datagram)
        const reply = { mode: ntpMode.server, stratum: 1, poll, precision: -20, reference: Buffer.from('TEST') }
        server.send(writeNtp({ ...reply, originTime, receiveTime, referenceTime: receiveTime, transmitTime: now() }), port, address)
      },
    },
  })
  clocks.push(socket)
  return socket.port
}

/** A server of chrony whose clock is off; its address, once it serves the time. */
async function chronyOff(seconds: number): Promise<string> {
  const port = await freePort()
  const name = `chrony-${port}`
  const conf = join(folder, `${name}.conf`)
  writeFileSync(
    conf,
    [
      `server 127.0.0.1 port ${await clockOff(seconds)} iburst minpoll 0 maxpoll 0`,
      'maxdistance 16',
      'maxupdateskew 1000000',
      `port ${port}`,
      'bindaddress 127.0.0.1',
      'allow 127.0.0.1',
      'cmdport 0',
      'bindcmdaddress /',
      `pidfile ${join(folder, `${name}.pid`)}`,
    ].join('\n'),
  )
  daemons.push(Bun.spawn([chronyd!, '-x', '-d', '-u', 'root', '-f', conf], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }))
  const server = `127.0.0.1:${port}`
  const source = sourceOf(server, time)
  await eventually(
    () =>
      source.ask(stop.signal).then(
        ({ offset }) => Math.abs(offset - seconds) < haste,
        () => false,
      ),
    `chrony serves a time that is off by ${seconds} s`,
    timeout,
  )
  return server
}

/** Synchronizes a clock with servers; its adjustments. */
function led(servers: readonly string[]) {
  const adjustments: { what: 'slew' | 'step'; offset: number }[] = []
  const entries: LogEntry[] = []
  const clock: LedClock = {
    slew: ({ offset }) => void adjustments.push({ what: 'slew', offset }),
    step: (offset) => void adjustments.push({ what: 'step', offset }),
  }
  const synchronizer = new Synchronizer({
    sources: servers.map((server) => sourceOf(server, time)),
    clock,
    time: steadyTime(time),
    log: createLogger((entry) => entries.push(entry)),
  })
  void synchronizer.run({ inStep() {}, outOfReach() {} }, stop.signal)
  return { adjustments, entries }
}

describe.skipIf(!chronyd)('before servers of chrony', () => {
  test('a clock that is far off is set by what chrony itself would set it by', async () => {
    const server = await chronyOff(5)
    const { adjustments } = led([server])
    const first = await eventually(() => adjustments[0], 'it is adjusted', timeout)
    const [, port] = server.split(':')
    const judge = Bun.spawn(
      [
        chronyd!,
        '-Q',
        '-t',
        '60',
        '-u',
        'root',
        `server 127.0.0.1 port ${port} iburst`,
        'maxdistance 16',
        `pidfile ${join(folder, 'judge.pid')}`,
      ],
      {
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      },
    )
    const reply = (await Promise.all([new Response(judge.stdout).text(), new Response(judge.stderr).text()])).join('')
    await judge.exited
    const [, wrong] = /System clock wrong by (-?[\d.]+) seconds/.exec(reply) ?? []
    expect(first.what).toBe('step')
    expect(Math.abs(first.offset - Number(wrong))).toBeLessThan(2 * haste)
    expect(Math.abs(first.offset - 5)).toBeLessThan(haste)
  }, 900_000)

  test('of three of which one lies, the two that agree are followed', async () => {
    const [honest, other, liar] = await Promise.all([chronyOff(0.2), chronyOff(0.2), chronyOff(-3)])
    const { adjustments, entries } = led([honest!, liar!, other!])
    const first = await eventually(() => adjustments[0], 'it is adjusted', timeout)
    expect(first.what).toBe('slew')
    expect(Math.abs(first.offset - 0.2)).toBeLessThan(haste)
    const warned = await eventually(
      () => entries.find(({ message }) => message === 'time server rejected, the others agree'),
      'a word about the liar',
      timeout,
    )
    expect(warned.fields.servers).toBe(liar)
  }, 900_000)
})
