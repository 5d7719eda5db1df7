import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { day, newCertificate } from '../../../src/pki/certificate.ts'
import { AccessLog, accessLimits } from '../../../src/programs/apid/access-log.ts'
import type { Stream } from '../../../src/rpc/http2/stream.ts'
import { freePort } from '../../support/free-port.ts'
import { runs } from '../../support/runs.ts'
import { authority, clientCertificate, failure, type Node, startNode } from './nodes.ts'

let first: Node
let second: Node
const reader = newCertificate({
  ca: authority,
  subject: { commonName: 'monitoring', organizations: ['os:reader'] },
  usage: ['clientAuth'],
  lifetime: day,
})

beforeAll(async () => {
  const port = await freePort()
  first = await startNode('127.0.0.1', port)
  second = await startNode('127.0.0.2', port)
})
afterAll(async () => {
  for (const node of [first, second]) await node.close()
})

/** Lines written until one is like this. */
async function line(node: Node, like: RegExp): Promise<string> {
  for (;;) {
    const found = node.access.find((each) => like.test(each))
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('every call has a line with its method, caller, node, duration and code, on each node that it passes', async () => {
  const channel = first.channel(reader)
  await channel.unary('machine.MachineService/Hostname', {}, { metadata: { token: 'secret', 'user-agent': 'me', node: '127.0.0.2' } })
  const [here, there] = await Promise.all([line(first, /Hostname/), line(second, /Hostname/)])
  expect(here).toMatch(
    /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d\.\d{6} access: OK \[\/machine\.MachineService\/Hostname\] [\d.]+(µs|ms|s) stream Success \(:authority=[^;]*;content-type=application\/grpc;node=127\.0\.0\.2;token=<hidden>;user-agent=me\) \{caller=monitoring;node=127\.0\.0\.2;peer=127\.0\.0\.1;roles=os:reader\}$/,
  )
  expect(there).toMatch(/ \{caller=monitoring;peer=127\.0\.0\.1;roles=os:reader;via=127\.0\.0\.1\}$/)
})

test('calls that were refused, failed or given up have one as well', async () => {
  const channel = first.channel(reader)
  await failure(channel.unary('machine.MachineService/Reboot', {}))
  expect(await line(first, /Reboot/)).toContain(' PermissionDenied [/machine.MachineService/Reboot]')
  await failure(channel.unary('machine.MachineService/Restart', { id: 'x' }, { metadata: { nodes: ['127.0.0.1', 'not a node'] } }))
  expect(await line(first, /Restart/)).toContain(' InvalidArgument [/machine.MachineService/Restart]')
  await failure(channel.unary('machine.MachineService/Stats', {}, { signal: AbortSignal.timeout(30), deadline: 0 }))
  expect(await line(first, /Stats/)).toContain(' Canceled [/machine.MachineService/Stats]')
})

test('a client that floods has as many as it may, its other calls are summed up, and others keep theirs', async () => {
  const flood = first.channel(clientCertificate(['os:operator']))
  const calls = accessLimits.burst * 3
  await Promise.all(Array.from({ length: calls }, () => flood.unary('machine.MachineService/Hostname', {})))
  await first.channel(clientCertificate(['os:admin'])).unary('machine.MachineService/Reboot', {})
  await line(first, /OK .*Reboot.*roles=os:admin/)
  expect(first.access.filter((each) => each.includes('roles=os:operator')).length).toBeLessThan(accessLimits.burst * 2)
  await first.close()
  expect(first.access.at(-1)).toMatch(/ access: \d+ more calls without a line each: OK \[\/machine\.MachineService\/Hostname\]$/)
})

describe('a call with large headers', () => {
  const log = (lines: string[]) => new AccessLog((text) => lines.push(...text.split('\n')))
  const caller = { roles: ['os:reader'], impersonator: true, address: '192.0.2.1' } as const
  const ends: (() => void)[] = []
  /** A call as the log sees it; headers that are charged are larger than usual. */
  const call = (charged: number) => ({ charged, whenClosed: (end: () => void) => ends.push(end) }) as unknown as Stream
  const end = () => {
    for (const each of ends.splice(0)) each()
  }

  test.each([
    ['one value', { nodes: '10.0.0.1,'.repeat(500), 'talos-role': ['os:reader'], 'x-ray': 'é' }],
    ['many values', Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`x-${n}`, [`${n}`, 'z'.repeat(20)]]))],
    [
      'values behind the end of the line',
      { ...Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`a-${n}`, 'z'.repeat(300)])), node: 'a' },
    ],
  ])('has the same line as any other: %s', (_, more) => {
    const headers = {
      ':path': '/machine.MachineService/Hostname',
      ':authority': 'here',
      'ichor-caller-name': 'me',
      te: 'trailers',
      ...more,
    }
    // The line ends at a limit of its own, so that its duration must be as long.
    using _clock = spyOn(performance, 'now').mockReturnValue(0)
    const lines = [0, 50_000].map((charged) => {
      const written: string[] = []
      const access = log(written)
      access.watch(call(charged), headers, caller)
      end()
      access.close()
      return written.map((line) => line.slice(line.indexOf('access:')).replace(/ [\d.]+(ns|µs|ms|s) stream /, ' stream '))
    })
    expect(lines[0]).toHaveLength(1)
    expect(lines[1]).toEqual(lines[0]!)
  })

  test('holds no more of them than its line has', () => {
    const access = log([])
    const begin = (count: number) => {
      for (let n = 0; n < count; n++) {
        const value = Buffer.alloc(60_000, `${n} `).toString('latin1')
        access.watch(call(60_000), { ':path': '/', 'x-large': value, nodes: value }, caller)
      }
    }
    begin(10)
    const held = () => {
      Bun.gc(true)
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    const before = held()
    // At least so many that their headers would exceed the bound.
    begin(Math.max(150, runs(300)))
    expect(held() - before).toBeLessThan(4 << 20)
    end()
  })
})

test('what a caller sends cannot look like a line of its own', async () => {
  const channel = second.channel(clientCertificate(['os:admin']))
  await channel.unary('machine.MachineService/Hostname', {}, { metadata: { 'user-agent': `x\u001b[2J${'y'.repeat(5000)}` } })
  const written = await line(second, /\?\[2J/)
  expect(written.length).toBeLessThan(accessLimits.line)
})
