/**
 * Malicious clients on a real cluster: each recipe of the bench for a few seconds, while an administrator makes calls,
 * a client writes into the cluster and reads it back, and a worker's certificate can be renewed. How quick all that stays is
 * measured by bench/hostile.ts.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { recipes, type Victim } from '../../bench/hostile/recipes.ts'
import { rotateLogs } from '../../bench/hostile/rotation.ts'
import { tlsKey } from '../../src/pki/key.ts'
import { newCSR } from '../../src/pki/request.ts'
import { type Channel, connect } from '../../src/rpc/client/channel.ts'
import type { TlsOptions } from '../../src/rpc/client/dial.ts'
import { fromMessage } from '../../src/rpc/resource-of-message.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

setDefaultTimeout(240_000)

const seconds = 3
const cluster = new TestCluster('hostile')
let node = { name: '', ip: '' }
let administrator: TlsOptions
let admin: Channel
let reader: Victim
let token = ''
const begun = new Map<string, number | undefined>()

beforeAll(async () => {
  await cluster.create('--workers', '0', '--cidr', '10.92.0.0/24')
  node = cluster.nodes()[0]!
  const { context, contexts } = parse(readFileSync(join(cluster.home, 'config'), 'utf8'))
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  const { ca, crt, key } = contexts[context]
  administrator = { ca: pem(ca), cert: pem(crt), key: tlsKey(pem(key)) }
  admin = connect({ address: `${node.ip}:50000`, tls: administrator })
  const request = { roles: ['os:reader'], crtTtl: { seconds: 3600, nanos: 0 } }
  const { messages } = await admin.unary('machine.MachineService/GenerateClientConfiguration', request)
  reader = { host: node.ip, cert: Buffer.from(messages[0]!.crt).toString(), key: tlsKey(Buffer.from(messages[0]!.key).toString()) }
  const root = { namespace: 'secrets', type: 'OSRootSecrets.secrets.talos.dev', id: 'os' }
  const { resource } = await admin.unary('cosi.resource.State/Get', root)
  token = (fromMessage(resource!).spec as { token: string }).token
  for (const program of programs) begun.set(program, cluster.processIn(node.name, program))
})
afterAll(async () => {
  admin?.close()
  await cluster.destroy()
  cluster.close()
})

const programs = ['/usr/bin/apid', '/usr/bin/trustd']

/** Repeatedly makes calls on an open connection and on a new one, and renews a certificate. */
async function others(over: () => boolean): Promise<number> {
  let rounds = 0
  for (; !over(); rounds++) {
    await admin.unary('machine.MachineService/Version', {}, { deadline: 10_000 })
    // The attackers share our address, whose connections make room for each other before anyone knows who is who: a client that
    // is turned away then dials again. One that is connected is never turned away.
    await eventually(askOnNewConnection, 10)
    await eventually(renew, 10)
  }
  return rounds
}

async function askOnNewConnection(): Promise<void> {
  const fresh = connect({ address: `${node.ip}:50000`, tls: administrator })
  try {
    await fresh.unary('machine.MachineService/Version', {}, { deadline: 10_000 })
  } finally {
    fresh.close()
  }
}

async function renew(): Promise<void> {
  const trustd = connect({ address: `${node.ip}:50001`, tls: { ca: administrator.ca! } }, { metadata: { token } })
  try {
    const { csr } = newCSR({ subject: { commonName: 'renewal' }, sans: { dns: ['renewal'] } })
    const { crt } = await trustd.unary('securityapi.SecurityService/Certificate', { csr: Buffer.from(csr) }, { deadline: 5_000 })
    expect(crt.length).toBeGreaterThan(0)
  } finally {
    trustd.close()
  }
}

/** Writes config maps one after the other; gives the names of those that were acknowledged. */
async function write(prefix: string, over: () => boolean): Promise<string[]> {
  const written: string[] = []
  while (!over()) {
    const name = `${prefix}-${written.length}`
    succeeded(await cluster.kubectl(['create', 'configmap', name, `--from-literal=name=${name}`]))
    written.push(name)
  }
  return written
}

const acknowledged: string[] = []

test.each(Object.keys(recipes))('%s: an administrator is answered, a certificate renewed and every write kept', async (name) => {
  const end = performance.now() + seconds * 1000
  const over = () => performance.now() > end
  const recipe = recipes[name]!
  const rotation = recipe.rotates ? rotateLogs(join(cluster.state, cluster.name, 'nodes', node.name, 'disk')) : undefined
  const attack = recipe.run({ ...reader, ...(rotation && { container: rotation.container }) }, over)
  const [rounds, written] = await Promise.all([others(over), write(name, over), attack])
  rotation?.stop()
  expect(rounds).toBeGreaterThan(0)
  expect(written.length).toBeGreaterThan(0)
  acknowledged.push(...written)
})

test('nothing that was written is lost, and no program of the node has ended', async () => {
  const { items } = await cluster.objects('get', 'configmaps')
  const names = new Set(items.map(({ metadata }) => metadata.name))
  expect(acknowledged.filter((name) => !names.has(name))).toEqual([])
  for (const program of programs) expect([program, cluster.processIn(node.name, program)]).toEqual([program, begun.get(program)])
})
