/** Keys of encrypted volumes and the programs of the field: its KMS seals for our machines, its client is served by ours, and cryptsetup opens the volumes. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/cosi/clock.ts'
import { kmsKeys } from '../../src/os/block/encryption/kms.ts'
import { type EncryptionKey, newPassphrase } from '../../src/os/block/encryption/passphrase.ts'
import { Unlocker } from '../../src/os/block/encryption/unlock.ts'
import { Outbound } from '../../src/os/outbound.ts'
import { newCA } from '../../src/pki/certificate.ts'
import { tlsKey } from '../../src/pki/key.ts'
import { newVolume } from '../../src/wire/luks2/format.ts'
import { readHeader } from '../../src/wire/luks2/header.ts'
import { eventually, succeeded } from '../cluster/cluster.ts'
import { builtTool, run } from '../etcd/etcd-tools.ts'
import { freePort } from '../support/free-port.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-kms-'))
const host = '127.0.0.1'
const machineUUID = '12345678-1234-4123-8123-567812345678'
const size = 20 << 20
const cost = { time: 4, memory: 64, cpus: 1 }
const ca = newCA({ subject: { organizations: ['kms'] }, kind: 'ed25519', now: new Date(), sans: { ips: [host] } })
const kinds = { kms: kmsKeys(new Outbound({ publicRoots: '', addedRoots: () => ca.crt, variables: () => [] })) }

const tools = { server: '', client: '' }
const running: Bun.Subprocess[] = []
const file = (name: string, content: string | Uint8Array): string => {
  writeFileSync(join(folder, name), content, { mode: 0o600 })
  chmodSync(join(folder, name), 0o600)
  return join(folder, name)
}
const tls = { crt: file('tls.crt', ca.crt), key: file('tls.key', tlsKey(ca.key)) }

beforeAll(async () => {
  tools.server = await builtTool(folder, 'kms-server', 'tests/interop/kms', 'github.com/siderolabs/kms-client/cmd/kms-server')
  tools.client = await builtTool(folder, 'kms-client', 'tests/interop/kms', '.')
}, 600_000)
afterAll(() => {
  for (const child of running) child.kill()
  rmSync(folder, { recursive: true })
})

/** Starts a server and waits until it accepts connections. */
async function started(argv: readonly string[], port: number): Promise<string> {
  running.push(
    Bun.spawn([...argv], { cwd: join(import.meta.dir, '../..'), stdout: 'ignore', stderr: Bun.file(join(folder, `log-${port}`)) }),
  )
  await eventually(async () => {
    const connection = await Bun.connect({ hostname: host, port, socket: { data() {} } })
    connection.end()
  })
  return `${host}:${port}`
}

async function fieldServer(key: Uint8Array, secure = false): Promise<string> {
  const port = await freePort()
  const options = secure ? ['-tls-enable', '-tls-cert-path', tls.crt, '-tls-key-path', tls.key] : []
  return started([tools.server, '-kms-api-endpoint', `${host}:${port}`, '-key-path', file(`key-${port}`, key), ...options], port)
}

async function ownServer(key: Uint8Array, secure = false): Promise<string> {
  const port = await freePort()
  const options = secure ? ['--tls-cert', tls.crt, '--tls-key', tls.key] : ['--plaintext']
  const program = [process.execPath, 'src/main.ts', 'talosctl', 'kms', 'serve', '--key-file', file(`key-${port}`, key)]
  return started([...program, '--listen', `${host}:${port}`, ...options], port)
}

const client = async (method: 'seal' | 'unseal', address: string, data: string, { uuid = machineUUID, secure = false } = {}) =>
  run([tools.client, method, address, uuid, ...(secure ? [tls.crt] : [])], { input: data })

/** A volume on a file, with one key. */
async function volume(name: string, key: EncryptionKey) {
  const path = file(name, '')
  const handle = await open(path, 'r+')
  await handle.truncate(size)
  const made = await newPassphrase({ key, slot: key.slot, volume: 'STATE', sources: { machineUUID } }, kinds)
  const { steps } = await newVolume({ cipher: 'aes-xts-plain64', keySize: 64, sectorSize: 512 }, { slot: key.slot, cost, ...made })
  for (const { offset, bytes } of steps.flat()) await handle.write(bytes, 0, bytes.length, offset)
  await handle.close()
  return path
}

async function unlock(path: string, keys: readonly EncryptionKey[]) {
  const read = async (offset: number, length: number) =>
    new Uint8Array(
      await Bun.file(path)
        .slice(offset, offset + length)
        .arrayBuffer(),
    )
  const header = await readHeader(read, size)
  return new Unlocker(kinds, systemClock).unlock({ volume: 'STATE', path, header, read, keys, sources: { machineUUID } })
}

const keyAt = (kmsEndpoint: string): EncryptionKey => ({ slot: 3, type: 'kms', kmsEndpoint })
const secret = () => crypto.getRandomValues(new Uint8Array(32))

/** Whether cryptsetup opens a volume with what the field's client makes of its token. */
async function opensElsewhere(path: string, address: string): Promise<boolean> {
  const cryptsetup = Bun.which('cryptsetup', { PATH: `${process.env.PATH}:/usr/sbin:/sbin` }) ?? ''
  const token = succeeded(await run([cryptsetup, 'token', 'export', '--token-id', '3', '--disable-locks', path])).stdout
  const { type, keyslots, UserData } = JSON.parse(token)
  expect([type, keyslots, Object.keys(UserData)]).toEqual(['sideroKMS', [], ['sealedData']])
  const passphrase = succeeded(await client('unseal', address, UserData.sealedData)).stdout.trim()
  const opened = await run([cryptsetup, 'open', '--test-passphrase', '--disable-locks', '--key-file=-', path], { input: passphrase })
  return opened.code === 0
}

test("a volume is locked by the field's server, opened through it, and opened elsewhere with its client and cryptsetup", async () => {
  const [address, wrong] = await Promise.all([fieldServer(secret()), fieldServer(secret())])
  const path = await volume('field', keyAt(`grpc://${address}`))
  expect(await unlock(path, [keyAt(`grpc://${address}`)])).toMatchObject({ slot: 3, failed: [] })
  expect(await opensElsewhere(path, address)).toBe(true)
  // Another server answers with random bytes: no error but a key that does not open.
  await expect(unlock(path, [keyAt(wrong)])).rejects.toThrow('slot 3 (kms): it does not open the volume')
}, 120_000)

test('over TLS too', async () => {
  const address = await fieldServer(secret(), true)
  const path = await volume('field-tls', keyAt(`https://${address}`))
  expect(await unlock(path, [keyAt(`https://${address}`)])).toMatchObject({ slot: 3 })
  await expect(unlock(path, [keyAt(`grpc://${address}`)])).rejects.toThrow('no key opens encrypted volume')
}, 120_000)

test("the field's client is served by talosctl, with and without TLS, for its own machine only", async () => {
  const key = secret()
  for (const secure of [false, true]) {
    const address = await ownServer(key, secure)
    const data = Buffer.from(secret()).toString('base64')
    const sealed = succeeded(await client('seal', address, data, { secure })).stdout
    expect(succeeded(await client('unseal', address, sealed, { secure })).stdout.trim()).toBe(data)
    expect(await client('unseal', address, sealed, { secure, uuid: machineUUID.replace('1', '2') })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('code = PermissionDenied'),
    })
    expect(await client('seal', address, 'AAAA', { secure })).toMatchObject({ stderr: expect.stringContaining('code = InvalidArgument') })
    const path = await volume(`own-${secure}`, keyAt(`${secure ? 'https' : 'grpc'}://${address}`))
    expect(await unlock(path, [keyAt(`${secure ? 'https' : 'grpc'}://${address}`)])).toMatchObject({ slot: 3 })
    if (!secure) expect(await opensElsewhere(path, address)).toBe(true)
  }
}, 120_000)
