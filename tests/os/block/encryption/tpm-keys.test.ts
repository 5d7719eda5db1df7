/** Keys in a TPM: sealed for this machine, for images of one maker, and for PCRs that keep their values. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { KeyError } from '../../../../src/os/block/encryption/passphrase.ts'
import type { KeyUse } from '../../../../src/os/block/encryption/sealed-kind.ts'
import { tpmKeys } from '../../../../src/os/block/encryption/tpm/sealing.ts'
import { readToken, writeToken } from '../../../../src/os/block/encryption/tpm/token.ts'
import { TpmWindow } from '../../../../src/os/block/encryption/tpm/tpm-window.ts'
import type { Kernel } from '../../../../src/os/kernel.ts'
import { imageOf, measureImage, newPcrKey, policyFiles } from '../../../support/measured-image.ts'
import { noSwtpm, type Swtpm, startSwtpm } from '../../../support/swtpm.ts'

const secret = Uint8Array.from({ length: 32 }, (_, at) => at)
const use = (settings: Partial<KeyUse['key']> = {}): KeyUse => ({
  ...{ key: { slot: 1, type: 'tpm', pcrs: [7], pubKeyPcrs: [11], ...settings }, slot: 1, volume: 'STATE', sources: {} },
})
const secureBoot = { '/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c': '\x06\0\0\0\x01' }
const failure = async (promise: Promise<unknown>): Promise<KeyError> => {
  const error = await promise.then(() => undefined).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(KeyError)
  return error as KeyError
}

const filesOf = (texts: Record<string, string>) =>
  ({
    readTextIfThere: (path: string) => texts[path],
    exists: (path: string) => path in texts,
    read: (path: string) => Buffer.from(texts[path] ?? '', 'latin1'),
  }) as unknown as Kernel['files']

describe.skipIf(noSwtpm !== undefined)(noSwtpm ?? 'a key in a TPM', () => {
  const maker = newPcrKey()
  let swtpm: Swtpm
  beforeAll(async () => {
    swtpm = await startSwtpm()
  })
  afterAll(() => swtpm.stop())

  /** Starts the machine with an image. */
  async function start(
    image = imageOf(maker),
    { firmware, tpm = swtpm, more = {} }: { firmware?: string; tpm?: Swtpm; more?: Record<string, string> } = {},
  ) {
    await tpm.restart()
    await measureImage(tpm.transmit, image, firmware)
    const window = new TpmWindow({ tpm: { openTpm: async () => ({ transmit: tpm.transmit, close: async () => {} }) } })
    return { window, kind: tpmKeys(window, filesOf({ ...policyFiles(image), ...more })) }
  }

  test('is unsealed at the next start, and by the next image of the same maker', async () => {
    const data = await (await start()).kind.seal(secret, use())
    expect(Object.keys(data)).toEqual([
      ...[
        'keyslots',
        'sealed_blob_private',
        'sealed_blob_public',
        'pcrs',
        'pubkey_pcrs',
        'alg',
        'encryption_version',
        'policy_hash',
        'key_name',
      ],
    ])
    expect({ keyslots: data.keyslots, pcrs: data.pcrs, pubkey_pcrs: data.pubkey_pcrs }).toEqual({
      keyslots: [1],
      pcrs: [7],
      pubkey_pcrs: [11],
    })
    expect(Buffer.from(String(data.key_name), 'base64').length).toBe(36)
    expect(await (await start()).kind.unseal(data, use())).toEqual(secret)
    expect(await (await start(imageOf(maker, 'quiet splash'))).kind.unseal(data, use())).toEqual(secret)
  })

  test('is not unsealed for a changed image, an image of another maker, changed PCRs or on another machine', async () => {
    const data = await (await start()).kind.seal(secret, use())
    const changed = await start(Buffer.from(imageOf(maker).toString('latin1').replace('quiet', 'init='), 'latin1'))
    const refused = await failure(changed.kind.unseal(data, use()))
    expect([refused.message, refused.stale]).toEqual([
      'PCR 11 is not what the signatures in the running image are for: it was started in another way',
      false,
    ])
    const other = await failure((await start(imageOf(newPcrKey()))).kind.unseal(data, use()))
    expect([other.message, other.stale]).toEqual([
      'PCR 7 changed since it was sealed ("talosctl measurements" shows by what), or the running image is signed with another PCR key',
      true,
    ])
    const { stale } = await failure((await start(undefined, { firmware: 'Secure Boot is off' })).kind.unseal(data, use()))
    expect(stale).toBe(true)
    const unsigned = await failure((await start(imageOf(undefined))).kind.unseal(data, use()))
    expect(unsigned.message).toStartWith('the running image has no signed PCR policy')
    await using board = await startSwtpm()
    const moved = await failure((await start(undefined, { tpm: board })).kind.unseal(data, use()))
    expect([moved.message, moved.stale]).toEqual(['it was sealed by another TPM, or this one was cleared since', true])
    expect(await (await start()).kind.unseal(data, use())).toEqual(secret)
  })

  test('is bound to the PCRs of the configuration, or to the image alone', async () => {
    const { kind } = await start()
    const data = await kind.seal(secret, use({ pcrs: [] }))
    expect(data.pcrs).toBeUndefined()
    expect([kind.isCurrent?.(data, use({ pcrs: [] }).key), kind.isCurrent?.(data, use().key)]).toEqual([true, false])
    expect(await (await start(undefined, { firmware: 'another firmware' })).kind.unseal(data, use())).toEqual(secret)
    // The TPM hashes PCRs in ascending order, whatever the order of the configuration.
    const unsorted = await (await start()).kind.seal(secret, use({ pcrs: [11, 7] }))
    expect(await (await start()).kind.unseal(unsorted, use())).toEqual(secret)
    const unmeasured = await failure((await start()).kind.seal(secret, use({ pcrs: [8] })))
    expect(unmeasured.message).toBe('PCR 8 was never extended: the firmware does not measure')
  })

  test('is added with Secure Boot only, where that is required', async () => {
    const required = use({ tpmCheckSecurebootStatusOnEnroll: true })
    const off = await failure((await start()).kind.seal(secret, required))
    expect(off.message).toBe('it is added with Secure Boot only, which is off or in setup mode')
    const data = await (await start(undefined, { more: secureBoot })).kind.seal(secret, required)
    expect(await (await start()).kind.unseal(data, required)).toEqual(secret)
  })

  test('is neither sealed nor unsealed once all volumes are open, or without a TPM', async () => {
    const { kind, window } = await start()
    const data = await kind.seal(secret, use())
    await window.close()
    expect((await failure(kind.unseal(data, use()))).message).toContain('until all volumes are open')
    const none = tpmKeys(new TpmWindow({ tpm: { openTpm: async () => undefined } }), filesOf(policyFiles(imageOf(maker))))
    expect((await failure(none.seal(secret, use()))).message).toStartWith('the machine has no TPM 2.0')
  })

  test('has a token that may be anything', async () => {
    const { kind } = await start()
    const data = await kind.seal(secret, use())
    const damaged = { ...data, sealed_blob_private: Buffer.alloc(100, 1).toString('base64') }
    expect((await failure(kind.unseal(damaged, use()))).message).toStartWith('decode token of a sealed key')
    const foreign = { ...data, policy_hash: Buffer.alloc(32).toString('base64') }
    expect((await failure(kind.unseal(foreign, use()))).stale).toBe(true)
    const [, , ...rest] = Buffer.from(String(data.sealed_blob_private), 'base64')
    const changed = Buffer.from([0, rest.length, ...rest.map((byte, at) => (at === 40 ? byte ^ 1 : byte))]).toString('base64')
    expect((await failure(kind.unseal({ ...data, sealed_blob_private: changed }, use()))).message).toContain('TPM load: TPM_RC_')
    expect((await failure(kind.unseal({}, use()))).message).toBe('its token in the header cannot be read: sealed_blob_private')
  })
})

test('tokens of older releases name neither their PCRs nor the key of the TPM', () => {
  const sealed = { privatePart: Uint8Array.of(1, 2), publicPart: Uint8Array.of(3) }
  const policy = new Uint8Array(32)
  const written = writeToken({ sealed, pcrs: [7], policy, rootName: Uint8Array.of(4) }, 2)
  expect(readToken(written)).toEqual({ sealed, pcrs: [7], policy, rootName: Uint8Array.of(4) })
  const { encryption_version: _, pubkey_pcrs: __, key_name: ___, ...old } = { ...written, pcrs: [11] } as Record<string, unknown>
  expect(readToken(old)).toEqual({ sealed, pcrs: [7], policy })
  expect(() => readToken({ ...written, pubkey_pcrs: [4] })).toThrow('its token binds it to a signature of the PCRs 4')
})
