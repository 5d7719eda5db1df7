import { afterAll, expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { MachineStatus } from '../../../../src/os/runtime/resources/machine-status.ts'
import { newCA, newCertificate, type PemPair } from '../../../../src/pki/certificate.ts'
import { tlsKey } from '../../../../src/pki/key.ts'
import { nodeState, resetNode } from '../../../../src/programs/talosctl/cluster/node-api.ts'
import { kubeconfigIn } from '../../../../src/programs/talosctl/kubeconfig-fetch.ts'
import { packAny } from '../../../../src/rpc/client/any.ts'
import { type Method, serverStream, unary } from '../../../../src/rpc/server/method.ts'
import { roleAccess } from '../../../../src/rpc/server/resource-access.ts'
import { type Server, serveTls } from '../../../../src/rpc/server/server.ts'
import { stateMethods } from '../../../../src/rpc/server/state.ts'

const ca = newCA({ subject: { organizations: ['talos'] } })
const admin = newCertificate({ ca, subject: { organizations: ['os:reader'] }, usage: ['clientAuth'], lifetime: 3600_000 })
const credentials = { ca: ca.crt, cert: admin.crt, key: tlsKey(admin.key) as string }
const signal = new AbortController().signal
const store = new Store()
store.register(MachineStatus)
const servers: Server[] = []
afterAll(() => Promise.all(servers.map((server) => server.close(0))))

/** A machine with this authority, which requires certificates of callers unless it is in maintenance. */
async function machine(authority: PemPair, maintenance: boolean, more: Method[] = []): Promise<string> {
  const { crt, key } = newCertificate({
    ca: authority,
    subject: {},
    sans: { ips: ['127.0.0.1'] },
    usage: ['serverAuth'],
    lifetime: 3600_000,
  })
  const tls = { ca: authority.crt, cert: crt, key: tlsKey(key), clients: maintenance ? 'requested' : 'required' } as const
  const methods = [unary('machine.MachineService/Version', ['os:reader'], () => ({ messages: [{}] })), ...stateMethods(roleAccess), ...more]
  const roles = () => new Set(['os:reader'] as const)
  const server = await serveTls({ port: 0, host: '127.0.0.1' }, tls, { methods, store, log: silent, roles })
  servers.push(server)
  return `127.0.0.1:${server.port}`
}

test('a node that lets anybody in is in maintenance', async () => {
  const address = await machine(newCA({ subject: { organizations: ['talos'] } }), true)
  expect(await nodeState({ address, credentials, signal })).toEqual({ stage: 'maintenance', ready: false })
})

test('a node of the cluster reports its stage, and whether it is ready', async () => {
  const address = await machine(ca, false)
  await expect(nodeState({ address, credentials, signal })).rejects.toMatchObject({ status: 'NotFound' })
  store.put(MachineStatus, 'machine', { stage: 'booting', status: { ready: false, unmetConditions: [{ name: 'nodeReady', reason: 'x' }] } })
  expect(await nodeState({ address, credentials, signal })).toEqual({ stage: 'booting', ready: false })
  store.put(MachineStatus, 'machine', { stage: 'running', status: { ready: true, unmetConditions: [] } })
  expect(await nodeState({ address, credentials, signal })).toEqual({ stage: 'running', ready: true })
})

test('a node of another cluster, and one that is away, are neither', async () => {
  const address = await machine(newCA({ subject: { organizations: ['talos'] } }), false)
  await expect(nodeState({ address, credentials, signal })).rejects.toMatchObject({ status: 'Unavailable' })
  await expect(nodeState({ address: '127.0.0.1:1', credentials, signal })).rejects.toMatchObject({ status: 'Unavailable' })
})

/** How a node reacts to a reset: it publishes events, and aborts it or goes away. */
const resetting = (error?: string): Method[] => [
  unary('machine.MachineService/Reset', ['os:reader'], () => ({ messages: [{ actorId: 'me' }] })),
  serverStream('machine.MachineService/Events', ['os:reader'], async function* ({ withActorId }) {
    const phase = packAny('machine.PhaseEvent', { phase: 'leave', action: 0 }, 'talos/runtime/')
    yield { id: '1', actorId: withActorId, data: phase }
    const end = { sequence: 'reset', action: 2, ...(error !== undefined && { error: { message: error } }) }
    yield { id: '2', actorId: withActorId, data: packAny('machine.SequenceEvent', end, 'talos/runtime/') }
  }),
]

test('a node that aborts a reset reports the reason', async () => {
  const leaving = resetNode(await machine(ca, false, resetting('task "leaveEtcd": no leader')), credentials, signal)
  await expect(leaving).rejects.toThrow('sequence reset failed: task "leaveEtcd": no leader')
  expect(await resetNode(await machine(ca, false, resetting()), credentials, signal)).toBeUndefined()
})

const archive = async (files: Record<string, string>) => new Uint8Array(await new Bun.Archive(files).bytes())
const inParts = async function* (bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 100) yield { bytes: bytes.subarray(at, at + 100) }
}
const kubeconfigOf = async (tar: Uint8Array) => kubeconfigIn(inParts(Bun.gzipSync(new Uint8Array(tar))))

test('the kubeconfig in an archive comes out whole', async () => {
  const text = 'x'.repeat(1500)
  expect(await kubeconfigOf(await archive({ kubeconfig: text, other: 'y' }))).toBe(text)
  expect(await kubeconfigIn(inParts(Buffer.from(text)))).toBe(text)
})

test('an archive cut short, or empty, is refused', async () => {
  const whole = await archive({ kubeconfig: 'x'.repeat(1500) })
  await expect(kubeconfigOf(whole.subarray(0, 1024))).rejects.toThrow('truncated')
  await expect(kubeconfigOf(new Uint8Array(1024))).rejects.toThrow('"kubeconfig" is not in the archive')
})
