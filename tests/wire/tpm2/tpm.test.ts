import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync, hash, sign } from 'node:crypto'
import { emptyPolicy, policyAuthorizeDigest, policyPcrDigest } from '../../../src/wire/tpm2/pcr.ts'
import { parsePolicyKey, signPolicy } from '../../../src/wire/tpm2/pcr-signatures.ts'
import { nameOf, policyKeyPublic } from '../../../src/wire/tpm2/public-area.ts'
import { TpmError } from '../../../src/wire/tpm2/response-code.ts'
import { SessionError } from '../../../src/wire/tpm2/session.ts'
import { Tpm } from '../../../src/wire/tpm2/tpm.ts'
import { noSwtpm, type Swtpm, startSwtpm } from '../../support/swtpm.ts'

const pcr = (number: number) => ({ bank: 'sha256', pcrs: [number] }) as const
const secret = new Uint8Array(32).fill(7)

describe.skipIf(noSwtpm !== undefined)(noSwtpm ?? 'a TPM', () => {
  let swtpm: Swtpm
  let tpm: Tpm
  beforeAll(async () => {
    swtpm = await startSwtpm()
    tpm = new Tpm(swtpm.transmit)
  })
  afterAll(() => swtpm.stop())

  test('has banks of PCRs that are extended together', async () => {
    const banks = await tpm.pcrBanks()
    expect(banks.find(({ bank }) => bank === 'sha256')?.pcrs).toEqual(Array.from({ length: 24 }, (_, at) => at))
    await tpm.measure(16, Buffer.from('foo'))
    await tpm.measure(16, Buffer.from('bar'))
    for (const { bank } of banks) {
      const [value = Buffer.alloc(0)] = (await tpm.readPcrs(bank, [16])).values()
      const size = hash(bank, '', 'buffer').length
      const first = hash(bank, Buffer.concat([Buffer.alloc(size), hash(bank, 'foo', 'buffer')]), 'buffer')
      expect([...value]).toEqual([...hash(bank, Buffer.concat([first, hash(bank, 'bar', 'buffer')]), 'buffer')])
    }
  })

  test('reads more PCRs than a response holds', async () => {
    const values = await tpm.readPcrs(
      'sha256',
      Array.from({ length: 24 }, (_, at) => 23 - at),
    )
    expect([...values.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: 24 }, (_, at) => at))
  })

  test('derives the same storage root key each time', async () => {
    const [one, two] = [await tpm.createStorageRoot(), await tpm.createStorageRoot()]
    expect(one.name).toEqual(two.name)
    for (const { handle } of [one, two]) await tpm.flush(handle)
  })

  test('unseals data with the PCRs it was sealed to, and not after they changed', async () => {
    const root = await tpm.createStorageRoot()
    const values = [...(await tpm.readPcrs('sha256', [8])).values()]
    const policy = policyPcrDigest(emptyPolicy, pcr(8), values)
    const sealing = await tpm.startSession('hmac', root)
    const sealed = await tpm.seal(root, sealing, secret, policy)
    await tpm.flush(sealing.handle)
    const object = await tpm.load(root, sealed)
    const session = await tpm.startSession('policy', root)
    await tpm.policyPcr(session, pcr(8))
    expect(await tpm.policyDigest(session)).toEqual(policy)
    expect(await tpm.unseal(object, session)).toEqual(secret)
    await tpm.flush(session.handle)
    await tpm.measure(8, Buffer.from('another start'))
    const later = await tpm.startSession('policy', root)
    await tpm.policyPcr(later, pcr(8))
    const refused = await tpm.unseal(object, later).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(TpmError)
    expect((refused as TpmError).message).toBe('TPM unseal: TPM_RC_POLICY_FAIL of session 1 (0x99d)')
    for (const handle of [later.handle, object.handle, root.handle]) await tpm.flush(handle)
  })

  test('accepts a policy that a key signed', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const key = parsePolicyKey(publicKey.export({ type: 'spki', format: 'pem' }).toString())
    const root = await tpm.createStorageRoot()
    const policy = policyAuthorizeDigest(nameOf(policyKeyPublic(key)))
    const sealing = await tpm.startSession('hmac', root)
    const object = await tpm.load(root, await tpm.seal(root, sealing, secret, policy))
    await tpm.flush(sealing.handle)
    const session = await tpm.startSession('policy', root)
    await tpm.policyPcr(session, pcr(9))
    const approved = await tpm.policyDigest(session)
    const { sig } = signPolicy(privateKey, 'sha256', [9], approved)
    const loaded = await tpm.loadPolicyKey(key)
    const digest = hash('sha256', approved, 'buffer')
    const forged = tpm.verify(loaded, digest, sign('sha256', Buffer.from('another policy'), privateKey))
    expect(((await forged.catch((error: unknown) => error)) as TpmError).is('SIGNATURE')).toBe(true)
    const ticket = await tpm.verify(loaded, digest, Buffer.from(sig, 'base64'))
    await tpm.policyAuthorize(session, approved, loaded.name, ticket)
    expect(await tpm.policyDigest(session)).toEqual(policy)
    expect(await tpm.unseal(object, session)).toEqual(secret)
    for (const handle of [session.handle, object.handle, loaded.handle, root.handle]) await tpm.flush(handle)
  })

  test('secrets are not on the bus, and a changed response is refused', async () => {
    const sent: Buffer[] = []
    let forge = false
    const watched = new Tpm(async (command) => {
      const response = await swtpm.transmit(command)
      sent.push(Buffer.from(command), Buffer.from(response))
      if (forge) response[20] = (response[20] ?? 0) ^ 1
      return response
    })
    const root = await watched.createStorageRoot()
    const policy = policyPcrDigest(emptyPolicy, pcr(23), [new Uint8Array(32)])
    const sealing = await watched.startSession('hmac', root)
    const object = await watched.load(root, await watched.seal(root, sealing, secret, policy))
    await watched.flush(sealing.handle)
    const session = await watched.startSession('policy', root)
    await watched.policyPcr(session, pcr(23))
    expect(await watched.unseal(object, session)).toEqual(secret)
    expect(sent.some((bytes) => bytes.includes(secret))).toBe(false)
    await watched.policyPcr(session, pcr(23))
    forge = true
    expect(await watched.unseal(object, session).catch((error: unknown) => error)).toBeInstanceOf(SessionError)
    forge = false
    for (const handle of [session.handle, object.handle, root.handle]) await watched.flush(handle)
  })
})
