import { expect, test } from 'bun:test'
import { fansOut } from '../../src/rpc/fan-out.ts'
import { methodShape } from '../../src/rpc/schema.ts'

test.each([
  ['machine.MachineService/Version', 'a list of messages that name their nodes'],
  ['machine.MachineService/Logs', 'a stream of messages that name their nodes'],
  ['ichor.v1.ConfigService/Apply', 'own services alike'],
])('%s goes to several nodes: %s', (path) => {
  expect(fansOut(methodShape(path))).toBe(true)
})

test.each([
  ['cosi.resource.State/Get', 'a reply of one resource'],
  ['cosi.resource.State/Watch', 'a stream of events without a node'],
  ['ichor.v1.ReleaseService/Upgrade', 'a stream of progress without a node'],
  ['ichor.v1.ReleaseService/Send', 'a reply without a node'],
])('%s goes to one node: %s', (path) => {
  expect(fansOut(methodShape(path))).toBe(false)
})
