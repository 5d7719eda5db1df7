/** A kernel without WireGuard: its links are TUN links, and a program that this test answers for. */
import { afterAll, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { withUserWireguard } from '../../../src/programs/init/user-wireguard.ts'
import type { Child, Command, Spawn } from '../../../src/supervise/spawn.ts'

interface Shown {
  name: string
  index: number
  kind: string
}

function machine(hasWireguard: boolean) {
  const links = new Map<string, Shown>()
  const calls: string[] = []
  const started: Command[] = []
  const children: (() => void)[] = []
  const network = () => ({
    links: () => [...links.values()],
    link: (which: string | number) => [...links.values()].find(({ name, index }) => name === which || index === which),
    addLink: ({ name, kind }: { name: string; kind: string }) => calls.push(`add ${kind} ${name}`),
    removeLink: (which: string) => calls.push(`remove ${which}`),
    [Symbol.dispose]() {},
  })
  const own = {
    hasWireguard: () => hasWireguard,
    wireguardDevice: (index: number) => ({ index, privateKey: "the kernel's" }),
    setWireguard: ({ index }: { index: number }) => calls.push(`set ${index}`),
  }
  const spawn: Spawn = (command) => {
    started.push(command)
    let end = (_: { code: number | null; signal: string | null }) => {}
    const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
      end = resolve
    })
    const kill = () => end({ code: null, signal: 'SIGKILL' })
    children.push(kill)
    return { pid: 1, output: [], exited, kill } satisfies Child
  }
  const kernel = withUserWireguard({ net: { openNetwork: network }, wireguard: own } as never, spawn, () => silent)
  return { kernel, links, calls, started, end: () => children.forEach((kill) => void kill()) }
}

const stops: (() => void)[] = []
afterAll(() => {
  for (const stop of stops) stop()
})

test("a kernel's own WireGuard is used", () => {
  const { kernel, calls, started } = machine(true)
  using network = kernel.net.openNetwork()
  network.addLink({ name: 'wg0', kind: 'wireguard' })
  kernel.wireguard.setWireguard({ index: 4 })
  expect(kernel.wireguard.wireguardDevice(4).privateKey).toBe("the kernel's")
  expect([calls, started]).toEqual([['add wireguard wg0', 'set 4'], []])
})

test('without it a program runs the link, until the link is removed', () => {
  const { kernel, links, calls, started, end } = machine(false)
  stops.push(end)
  using network = kernel.net.openNetwork()
  network.addLink({ name: 'wg0', kind: 'wireguard' })
  network.addLink({ name: 'wg0', kind: 'wireguard' })
  network.addLink({ name: 'br0', kind: 'bridge' })
  expect(started.map(({ argv }) => argv)).toEqual([['/usr/bin/wireguard', 'wg0', '/run/wireguard']])
  links.set('wg0', { name: 'wg0', index: 7, kind: 'tun' })
  links.set('tun0', { name: 'tun0', index: 8, kind: 'tun' })
  expect(network.links().map(({ kind }) => kind)).toEqual(['wireguard', 'tun'])
  expect(network.link('wg0')?.kind).toBe('wireguard')
  expect(kernel.wireguard.wireguardDevice(7)).toEqual({
    index: 7,
    privateKey: '',
    publicKey: '',
    listenPort: 0,
    firewallMark: 0,
    peers: [],
  })
  kernel.wireguard.setWireguard({ index: 7, listenPort: 1 })
  network.removeLink('wg0')
  expect(network.link('wg0')?.kind).toBe('tun')
  network.removeLink('tun0')
  expect(calls).toEqual(['add bridge br0', 'remove tun0'])
})
