import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import { connect } from '../../src/rpc/client/channel.ts'
import type { PeerSocket } from '../../src/rpc/http2/output.ts'
import { unary } from '../../src/rpc/server/method.ts'
import { peerRoles, serviceRoles } from '../../src/rpc/server/peer-roles.ts'
import { serveUnix } from '../../src/rpc/server/server.ts'
import { allRoles, type Role } from '../../src/wire/x509/roles.ts'

test('apid forwards any role, the dashboard reads and writes META, others get no role', () => {
  expect(serviceRoles('apid')).toEqual(allRoles)
  expect(serviceRoles('ext-agent')).toEqual(allRoles)
  expect(serviceRoles('dashboard')).toEqual(['os:reader', 'os:meta:writer'])
  for (const service of ['machined', 'kubelet', 'constructor', undefined]) expect(serviceRoles(service)).toEqual([])
})

test('a claim beyond the roles of the peer service is not granted', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-peer-'))
  const path = join(folder, 'machine.sock')
  const sockets = new Set<PeerSocket>()
  let roles: Role[] = []
  const methods = [
    unary('machine.MachineService/Hostname', 'anyone', (_, context) => {
      roles = [...context.roles]
      return {}
    }),
  ]
  const lookUp = (socket: PeerSocket) => {
    sockets.add(socket)
    return 'dashboard'
  }
  const server = await serveUnix({ path }, { methods, store: new Store(), log: silent, roles: peerRoles(lookUp) })
  const channel = connect({ unix: path })
  await channel.unary('machine.MachineService/Hostname', {}, { metadata: { 'talos-role': ['os:admin', 'os:reader'] } })
  expect(roles).toEqual(['os:reader'])
  await channel.unary('machine.MachineService/Hostname', {})
  expect(roles).toEqual([])
  expect(sockets.size).toBe(1)
  channel.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

test('a process that calls before its service is registered is not refused for the rest of its connection', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-peer-'))
  const path = join(folder, 'machine.sock')
  const sockets = new Set<PeerSocket>()
  let service: string | undefined
  let lookUps = 0
  const lookUp = (socket: PeerSocket) => {
    sockets.add(socket)
    lookUps++
    return service
  }
  const methods = [unary('machine.MachineService/Hostname', ['os:reader'], () => ({}))]
  const server = await serveUnix({ path }, { methods, store: new Store(), log: silent, roles: peerRoles(lookUp) })
  const channel = connect({ unix: path })
  const call = () => channel.unary('machine.MachineService/Hostname', {}, { metadata: { 'talos-role': ['os:reader'] } })
  await expect(call()).rejects.toThrow('not authorized')
  service = 'apid'
  await call()
  // What was found is kept: a service that ends takes its connections with it.
  service = undefined
  await call()
  expect([sockets.size, lookUps]).toEqual([1, 2])
  channel.close()
  await server.close()
  rmSync(folder, { recursive: true })
})
