import { expect, test } from 'bun:test'
import { checkLoop, checkMesh } from '../../../../../src/programs/talosctl/cluster/host/preflight.ts'

test('a mesh of containers needs the WireGuard of this host', () => {
  checkMesh(() => true)
  expect(() => checkMesh(() => false)).toThrow('this kernel has no WireGuard: load it with "modprobe wireguard"')
})

test('a root file system needs a loop device', () => {
  checkLoop(['loop-control', 'null'])
  expect(() => checkLoop(['null'])).toThrow('modprobe loop')
})
