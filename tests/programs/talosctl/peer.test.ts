import { expect, test } from 'bun:test'
import { readers, serverStream, unary } from '../../../src/rpc/server/method.ts'
import { talosctl } from './peer.ts'

const memory = unary('machine.MachineService/Memory', readers, () => ({ messages: [{ meminfo: { memtotal: 1024 } }] }))
const reboot = unary('machine.MachineService/Reboot', ['os:admin'], () => ({ messages: [{ actorId: 'me' }] }))

test('a reply that names no node is the reply of every node the call is for', async () => {
  const { stdout } = await talosctl([memory], ['memory'], { nodes: ['10.6.0.2', '10.6.0.3'] })
  expect(stdout.match(/^\S+/gm)).toEqual(['NODE', '10.6.0.2', '10.6.0.3'])
  const logs = serverStream('machine.MachineService/Logs', readers, async function* () {
    yield { bytes: Buffer.from('up\n') }
  })
  expect((await talosctl([logs], ['logs', 'apid'], { nodes: ['a', 'b'] })).stdout).toBe('a: up\nb: up\n')
})

test('a caller without nodes is answered by the endpoint, which names none', async () => {
  expect((await talosctl([memory], ['memory'], { nodes: [] })).stdout.split('\n')[1]).toStartWith('127.0.0.1 ')
})

test('a caller has the roles it is given', async () => {
  expect((await talosctl([memory], ['memory'], { roles: ['os:reader'] })).code).toBe(0)
  const { code, stderr } = await talosctl([reboot], ['reboot', '--wait=false'], { roles: ['os:reader'] })
  expect([code, stderr]).toEqual([1, 'rpc error: code = PermissionDenied desc = not authorized\n'])
})
