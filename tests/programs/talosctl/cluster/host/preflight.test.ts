import { expect, test } from 'bun:test'
import { checkLoop, checkMesh } from '../../../../../src/programs/talosctl/cluster/host/preflight.ts'

test('a mesh of containers needs WireGuard or a TUN device of this host', () => {
  checkMesh(() => true)
  expect(() => checkMesh(() => false)).toThrow('load one with "modprobe wireguard" or "modprobe tun"')
})

test('a root file system needs a loop device', () => {
  checkLoop(['loop-control', 'null'])
  expect(() => checkLoop(['null'])).toThrow('modprobe loop')
})
