/** A machine whose volumes are locked by keys of a KMS: it is installed, started without the server, and opened once that answers. */
import { afterAll, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { kmsMethods } from '../../../src/programs/kms/methods.ts'
import { type Server, servePlain } from '../../../src/rpc/server/server.ts'
import { freePort } from '../../support/free-port.ts'
import { Hardware } from './sandbox-hardware.ts'
import { ended, installedOn, machineConfig, startMachine } from './sandbox-machine.ts'
import { unexpected, useSandbox } from './sandbox-node.ts'
import { headerOf, ready, status, stop, until, volume } from './sandbox-volumes.ts'

useSandbox()
const hardware = new Hardware(true)
const host = '127.0.0.1'
const port = await freePort()
let server: Server | undefined

const serve = async (fill = 5) => {
  const methods = kmsMethods(() => [new Uint8Array(32).fill(fill)])
  server = await servePlain({ host, port }, { methods, store: new Store(), log: silent, roles: () => new Set<never>() })
}
const unserve = async () => {
  await server?.close(0)
  server = undefined
}
afterAll(async () => {
  await unserve()
  hardware.remove()
  expect(unexpected).toEqual([])
})

const uuid = '3e2a4d50-71c9-4a55-9d4e-0b0f6a1c2d3e'
const uncounted = true
const kms = `kms: { endpoint: "grpc://${host}:${port}" }`
const configuration = `${machineConfig()}${volume('STATE', `[{ slot: 0, ${kms} }]`)}${volume('EPHEMERAL', `[{ slot: 2, ${kms}, lockToState: true }, { slot: 1, static: { passphrase: spare } }]`)}`

const header = (index: number) => headerOf(hardware, index)

test('an installation seals a key for each volume', async () => {
  await serve()
  expect(await ended(await startMachine(hardware, { from: 'medium', config: configuration, uuid, uncounted }))).toEqual(['reboot'])
  expect((await installedOn(hardware)).labels).toEqual(['EFI', 'META', 'STATE', 'EPHEMERAL'])
  const { metadata } = await header(3)
  expect(metadata.tokens[0]).toMatchObject({ type: 'sideroKMS', keyslots: [], UserData: { sealedData: expect.stringMatching(/^.{80}$/) } })
}, 60_000)

test('STATE waits for its server, and then all volumes open', async () => {
  await unserve()
  const here = await startMachine(hardware, { from: 'disk', uuid, uncounted })
  await until(here, 'the failure', () => status(here, 'STATE')?.phase === 'failed')
  expect(status(here, 'STATE')?.errorMessage).toMatch(
    /^no key opens encrypted volume "STATE" on \/dev\/vda3: slot 0 \(kms\): the KMS "grpc:/,
  )
  await serve()
  await until(here, 'EPHEMERAL', () => ready(here))
  expect(status(here, 'STATE')).toMatchObject({ phase: 'ready', encryptionSlot: 0, configuredEncryptionKeys: ['kms'] })
  await until(here, 'all keys', async () => Object.keys((await header(4)).metadata.keyslots).join() === '1,2')
  expect((await header(4)).metadata.tokens).toEqual({ 2: expect.objectContaining({ type: 'sideroKMS' }) })
  await stop(here)
}, 60_000)

test('a server with another key opens nothing, and replaces no key', async () => {
  await unserve()
  await serve(6)
  const before = await header(3)
  const here = await startMachine(hardware, { from: 'disk', uuid, uncounted })
  await until(here, 'the failure', () => status(here, 'STATE')?.phase === 'failed')
  expect(status(here, 'STATE')?.errorMessage).toContain('this server sealed no such key')
  expect((await header(3)).sequence).toBe(before.sequence)
  await unserve()
  await here.stop()
}, 60_000)
