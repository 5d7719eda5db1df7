/** Capturing packets of a link between two namespaces of our own. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openCapture } from '../../src/linux/net/capture.ts'
import { createNetns, inNetns, removeNetns } from '../../src/linux/net/netns.ts'
import { type Network, openNetwork } from '../../src/linux/net/rtnetlink.ts'
import { packetFilter } from '../../src/wire/packet/filter.ts'
import { linkType } from '../../src/wire/packet/pcap.ts'
import { packetSummary } from '../../src/wire/packet/summary.ts'

let folder = ''
let here: Network
let there: Network
const hereNs = () => join(folder, 'here')
const thereNs = () => join(folder, 'there')

beforeAll(() => {
  folder = mkdtempSync('/run/ichor-story-')
  createNetns(hereNs())
  createNetns(thereNs())
  here = openNetwork({ netns: hereNs() })
  there = openNetwork({ netns: thereNs() })
  here.addVeth({ name: 'a', up: true, peer: { name: 'b', up: true }, peerNetns: thereNs() })
  here.addAddress({ address: '10.78.0.1/24', link: here.indexOf('a') })
  there.addAddress({ address: '10.78.0.2/24', link: there.indexOf('b') })
})
afterAll(() => {
  here.close()
  there.close()
  removeNetns(hereNs())
  removeNetns(thereNs())
  rmSync(folder, { recursive: true })
})

test('packets in both directions are captured, with link headers, and a filter is applied', async () => {
  const all: string[] = []
  const some: string[] = []
  const into = (list: string[]) => (bytes: Uint8Array, length: number) =>
    void list.push(packetSummary({ time: 0, bytes, length }, linkType.ethernet))
  const link = { index: here.indexOf('a'), name: 'a' }
  const everything = openCapture(link, into(all), { netns: hereNs(), promiscuous: true })
  const filtered = openCapture(link, into(some), { netns: hereNs(), filter: packetFilter('tcp dst port 7777').map((one) => [...one]) })
  const server = inNetns(thereNs(), () =>
    Bun.listen({ hostname: '10.78.0.2', port: 7777, socket: { open: (socket) => void socket.end('hello'), data() {} } }),
  )
  const done = Promise.withResolvers<void>()
  inNetns(hereNs(), () => {
    Bun.connect({ hostname: '10.78.0.2', port: 7777, socket: { data() {}, close: () => done.resolve() } })
  })
  await done.promise
  for (let i = 0; i < 100 && !(all.some((line) => line.includes('[FP') || line.includes('[F')) && some.length > 1); i++) await Bun.sleep(10)
  everything.close()
  filtered.close()
  server.stop(true)
  expect(all.some((line) => line.includes('ARP who has 10.78.0.2, tell 10.78.0.1'))).toBe(true)
  expect(all.some((line) => /10\.78\.0\.1\.\d+ > 10\.78\.0\.2\.7777: TCP \[S\]/.test(line))).toBe(true)
  expect(all.some((line) => /10\.78\.0\.2\.7777 > 10\.78\.0\.1\.\d+: TCP \[S\.\]/.test(line))).toBe(true)
  expect(some.length).toBeGreaterThan(0)
  expect(some.every((line) => / > 10\.78\.0\.2\.7777: TCP/.test(line))).toBe(true)
})

test('a truncated packet is reported with its full length, and an invalid filter is refused', () => {
  const link = { index: here.indexOf('a'), name: 'a' }
  expect(() => openCapture(link, () => {}, { netns: hereNs(), filter: [[0xffff, 0, 0, 0]] })).toThrow('EINVAL')
  expect(() => openCapture({ index: 999_999, name: 'none' }, () => {}, { netns: hereNs() })).toThrow('ENODEV')
})
