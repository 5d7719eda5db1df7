/** What is measured and sealed here, tpm2-tools read as they do their own, and the other way round. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { joined, sized } from '../../src/wire/tpm2/buffer.ts'
import { emptyPolicy, policyAuthorizeDigest, policyPcrDigest } from '../../src/wire/tpm2/pcr.ts'
import { parsePolicyKey } from '../../src/wire/tpm2/pcr-signatures.ts'
import { nameOf, policyKeyPublic } from '../../src/wire/tpm2/public-area.ts'
import { Tpm } from '../../src/wire/tpm2/tpm.ts'
import { type Swtpm, startSwtpm } from '../support/swtpm.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-tpm-'))
const file = (name: string) => join(folder, name)
const read = (name: string) => new Uint8Array(readFileSync(file(name)))
const secret = Buffer.from('a secret of 32 bytes, no NUL in.')
const selection = { bank: 'sha256', pcrs: [7, 11] } as const
let swtpm: Swtpm
let tpm: Tpm

beforeAll(async () => {
  swtpm = await startSwtpm()
  tpm = new Tpm(swtpm.transmit)
  await tpm.measure(7, Buffer.from('keys of the firmware'))
  await tpm.measure(11, Buffer.from('enter-initrd'))
})
// Without a resource manager nothing frees what programs leave in the TPM.
beforeEach(async () => {
  for (const kind of ['--transient-object', '--loaded-session']) await tool('flushcontext', kind)
})
afterAll(async () => {
  await swtpm.stop()
  rmSync(folder, { recursive: true })
})

async function tool(name: string, ...options: string[]): Promise<string> {
  const child = Bun.spawn([`tpm2_${name}`, '-T', swtpm.tcti, ...options], { cwd: folder, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`tpm2_${name} ${options.join(' ')}: ${stderr}`)
  return stdout
}

/** Makes the same storage root key by the tools: its unique field is 32 zeros for each coordinate. */
async function theirRoot(): Promise<void> {
  // The tool reads a structure of C: a size and room for the largest key.
  const coordinate = Buffer.concat([Buffer.from([32, 0]), Buffer.alloc(128)])
  writeFileSync(file('unique'), Buffer.concat([coordinate, coordinate]))
  const attributes = 'fixedtpm|fixedparent|sensitivedataorigin|userwithauth|noda|restricted|decrypt'
  await tool('createprimary', '-C', 'o', '-G', 'ecc256:aes128cfb', '-g', 'sha256', '-a', attributes, '-u', 'unique', '-c', 'root')
}

async function theirSession(): Promise<void> {
  await tool('startauthsession', '--policy-session', '-S', 'session')
  await tool('policypcr', '-S', 'session', '-l', 'sha256:7,11')
}

const ourPolicy = async () => policyPcrDigest(emptyPolicy, selection, [...(await tpm.readPcrs('sha256', selection.pcrs)).values()])

test('both read the same PCRs', async () => {
  await tool('pcrread', 'sha256:7,11,23', '-o', 'values')
  const ours = await tpm.readPcrs('sha256', [7, 11, 23])
  expect(Buffer.concat([...ours.values()]).equals(read('values'))).toBe(true)
})

test('both compute the same policies', async () => {
  await tool('startauthsession', '-S', 'trial')
  await tool('policypcr', '-S', 'trial', '-l', 'sha256:7,11', '-L', 'policy')
  expect(read('policy')).toEqual(Uint8Array.from(await ourPolicy()))
})

test('both derive the same storage root key', async () => {
  const { name, handle } = await tpm.createStorageRoot()
  await tpm.flush(handle)
  await theirRoot()
  await tool('readpublic', '-c', 'root', '-n', 'root.name')
  expect(read('root.name')).toEqual(Uint8Array.from(name))
})

test('the tools unseal what is sealed here', async () => {
  const root = await tpm.createStorageRoot()
  const session = await tpm.startSession('hmac', root)
  const { privatePart, publicPart } = await tpm.seal(root, session, secret, await ourPolicy())
  for (const handle of [session.handle, root.handle]) await tpm.flush(handle)
  writeFileSync(file('private'), sized(privatePart))
  writeFileSync(file('public'), sized(publicPart))
  await theirRoot()
  await tool('load', '-C', 'root', '-r', 'private', '-u', 'public', '-c', 'object')
  await tool('flushcontext', '--transient-object')
  await theirSession()
  expect(await tool('unseal', '-c', 'object', '-p', 'session:session')).toBe(secret.toString())
})

test('what the tools seal is unsealed here', async () => {
  writeFileSync(file('secret'), secret)
  await theirRoot()
  writeFileSync(file('policy'), await ourPolicy())
  await tool('create', '-C', 'root', '-i', 'secret', '-L', 'policy', '-a', 'fixedtpm|fixedparent|noda', '-r', 'private', '-u', 'public')
  await tool('flushcontext', '--transient-object')
  const root = await tpm.createStorageRoot()
  const object = await tpm.load(root, { privatePart: read('private').subarray(2), publicPart: read('public').subarray(2) })
  const session = await tpm.startSession('policy', root)
  await tpm.policyPcr(session, selection)
  expect(Buffer.from(await tpm.unseal(object, session)).toString()).toBe(secret.toString())
})

test('both give signed policies the same digest', async () => {
  for (const argv of [
    ['openssl', 'genrsa', '-out', 'key.pem', '2048'],
    ['openssl', 'rsa', '-in', 'key.pem', '-pubout', '-out', 'public.pem'],
  ])
    expect(await Bun.spawn(argv, { cwd: folder, stdout: 'ignore', stderr: 'ignore' }).exited).toBe(0)
  const area = policyKeyPublic(parsePolicyKey(readFileSync(file('public.pem'), 'utf8')))
  writeFileSync(file('key.public'), joined(sized(area)))
  await tool('loadexternal', '-C', 'o', '-u', 'key.public', '-c', 'key', '-n', 'key.name')
  expect(read('key.name')).toEqual(Uint8Array.from(nameOf(area)))
  await tool('flushcontext', '--transient-object')
  await tool('startauthsession', '-S', 'trial')
  writeFileSync(file('approved'), emptyPolicy)
  await tool('policyauthorize', '-S', 'trial', '-n', 'key.name', '-i', 'approved', '-L', 'policy')
  expect(read('policy')).toEqual(Uint8Array.from(policyAuthorizeDigest(nameOf(area))))
})
