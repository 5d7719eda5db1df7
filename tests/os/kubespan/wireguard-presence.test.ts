import { expect, test } from 'bun:test'
import { WireguardPresence } from '../../../src/os/kubespan/wireguard-presence.ts'

function presence(mode: 'metal' | 'container', kernel: { has: boolean; tun: boolean }) {
  return new WireguardPresence({ mode, wireguard: { hasWireguard: () => kernel.has, canRunInUserSpace: () => kernel.tun } })
}

test('a machine waits for the module of its kernel before it runs WireGuard in user space', () => {
  const kernel = { has: false, tun: true }
  const machine = presence('metal', kernel)
  expect([machine.look(0), machine.look(9_000)]).toEqual(['awaited', 'awaited'])
  kernel.has = true
  expect(machine.look(9_600)).toBe('there')
  expect([presence('metal', { has: false, tun: true })].map((late) => [late.look(0), late.look(30_000)])).toEqual([['awaited', 'there']])
})

test('a container has the kernel of its host at once', () => {
  expect(presence('container', { has: false, tun: true }).look(0)).toBe('there')
  expect(presence('container', { has: false, tun: false }).look(0)).toBe('lacking')
})
