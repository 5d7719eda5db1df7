import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { Cluster } from '../../../src/programs/talosctl/cluster.ts'
import { unary } from '../../../src/rpc/server/method.ts'
import { servePlain } from '../../../src/rpc/server/server.ts'
import { freePort } from '../../support/free-port.ts'
import { textIo } from './text-io.ts'

test('endpoints that were all away at once are tried again by the next call', async () => {
  const ports = [await freePort(), await freePort()]
  const endpoints = ports.map((port) => `127.0.0.1:${port}`)
  const cluster = new Cluster(textIo(), { endpoints, nodes: [], source: 'test' })
  const hostname = () => cluster.ask('machine.MachineService/Hostname', {})
  await expect(hostname()).rejects.toThrow('no endpoint answers')
  const answer = unary('machine.MachineService/Hostname', 'anyone', () => ({ messages: [{ hostname: 'back' }] }))
  const server = await servePlain({ host: '127.0.0.1', port: ports[1] ?? 0 }, { methods: [answer], store: new Store(), log: silent })
  expect(await hostname()).toMatchObject([{ hostname: 'back' }])
  await cluster.close()
  await server.close()
})
