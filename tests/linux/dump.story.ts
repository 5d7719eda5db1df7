/** A table of the kernel that changes while it is read is dumped again: the result is a consistent snapshot. */
import { expect, mock, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createNetns, removeNetns } from '../../src/linux/net/netns.ts'
import * as message from '../../src/wire/netlink/message.ts'

const { readMessages } = message
/** Done once, when the next part of an answer has come. */
let meanwhile: (() => void) | undefined
mock.module('../../src/wire/netlink/message.ts', () => ({
  ...message,
  readMessages(bytes: Uint8Array) {
    const act = meanwhile
    meanwhile = undefined
    act?.()
    return readMessages(bytes)
  },
}))
const { openNetwork } = await import('../../src/linux/net/rtnetlink.ts')

test('a change between two parts of a dump makes the client repeat it', () => {
  const folder = mkdtempSync('/run/ichor-story-')
  const netns = join(folder, 'node')
  createNetns(netns)
  try {
    using network = openNetwork({ netns })
    using other = openNetwork({ netns })
    network.addVeth({ name: 'eth0', peer: { name: 'eth1' } })
    const link = network.indexOf('eth0')
    const many = Array.from({ length: 3000 }, (_, n) => `10.${n >> 8}.${n & 255}.1/32`)
    for (const address of many) network.addAddress({ link, address })
    // The loopback comes first: its addresses have passed by when the second part is read.
    const late = '10.250.0.1/32'
    meanwhile = () => other.addAddress({ link: other.indexOf('lo'), address: late })
    const found = network.addresses().map(({ address }) => address)
    expect(meanwhile).toBeUndefined()
    expect(found).toContain(late)
    expect(found.filter((address) => address !== late).sort()).toEqual(many.toSorted())
  } finally {
    removeNetns(netns)
    rmSync(folder, { recursive: true, force: true })
  }
})
