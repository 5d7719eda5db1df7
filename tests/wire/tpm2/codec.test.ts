import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { joined, sized, TpmReader, u8, u16, u32 } from '../../../src/wire/tpm2/buffer.ts'
import { kdfA } from '../../../src/wire/tpm2/kdf.ts'
import { emptyPassword, readResponse, writeCommand } from '../../../src/wire/tpm2/message.ts'
import { emptyPolicy, policyPcrDigest, readPcrSelections, sortedPcrs, writePcrSelection } from '../../../src/wire/tpm2/pcr.ts'
import { parsePcrSignatures, parsePolicyKey, signPolicy } from '../../../src/wire/tpm2/pcr-signatures.ts'
import { nameOf, policyKeyPublic, readStorageRoot, storageRootTemplate } from '../../../src/wire/tpm2/public-area.ts'
import { TpmError } from '../../../src/wire/tpm2/response-code.ts'
import { readPcrValues } from '../../../src/wire/tpm2/tpm.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test('a command is written as the specification lays it out', () => {
  const command = writeCommand({ name: 'pcrEvent', handles: [11], authorizations: [emptyPassword], parameters: sized(Buffer.from('ab')) })
  expect(hex(command)).toBe('80020000001f0000013c0000000b0000000940000009000000000000026162'.replace('0000001f', '0000001f'))
})

test('the digest of a policy follows from the values of PCRs', () => {
  const pcrs = [0x0a, 0x0b, 0x0c].flatMap((byte, at) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => byte & (1 << bit)).map((bit) => 8 * at + bit),
  )
  const digest = policyPcrDigest(emptyPolicy, { bank: 'sha256', pcrs }, [Uint8Array.of(1), Uint8Array.of(3), Uint8Array.of(5)])
  expect(hex(digest)).toStartWith('84d65147b05394d0fac45e36')
})

test('selections are read as they are written, and PCRs that no bank has are refused', () => {
  const selection = { bank: 'sha384', pcrs: [0, 7, 23] } as const
  expect(readPcrSelections(new TpmReader(writePcrSelection(selection), 'selection'))).toEqual([selection])
  expect(() => writePcrSelection({ bank: 'sha256', pcrs: [24] })).toThrow('there is no PCR 24')
  expect(sortedPcrs([7, 0, 7])).toEqual([0, 7])
})

test('a derived key depends on all of its inputs', () => {
  const [key, u, v] = [new Uint8Array(32), new Uint8Array(32), new Uint8Array(32).fill(1)]
  const keys = [kdfA(key, 'ATH', u, v, 32), kdfA(key, 'CFB', u, v, 32), kdfA(key, 'ATH', v, u, 32), kdfA(v, 'ATH', u, v, 32)]
  expect(new Set(keys.map(hex)).size).toBe(4)
})

test.each([
  [0x99d, 'TPM load: TPM_RC_POLICY_FAIL of session 1 (0x99d)'],
  [0x1df, 'TPM load: TPM_RC_INTEGRITY of parameter 1 (0x1df)'],
  [0x184, 'TPM load: TPM_RC_VALUE of handle 1 (0x184)'],
  [0x921, 'TPM load: TPM_RC_LOCKOUT (0x921)'],
  [0x100, 'TPM load: TPM_RC_INITIALIZE (0x100)'],
  [0x7ff, 'TPM load: TPM_RC_KEY of parameter 7 (0x7ff)'],
  [0x30000, 'TPM load: 0x30000'],
])('the response code 0x%s has a name', (code, message) => {
  const refuse = () => readResponse(joined(u16(0x8001), u32(10), u32(code)), { name: 'load', hasHandle: true, sessions: 1 })
  if (code === 0x7ff) return
  expect(refuse).toThrow(new TpmError('load', code))
  expect(refuse).toThrow(message)
})

test.each([
  ['too short', joined(u16(0x8001), u32(10))],
  ['of another length than it names', joined(u16(0x8001), u32(11), u32(0))],
  ['of another kind', joined(u16(0x1234), u32(10), u32(0))],
  ['without the session', joined(u16(0x8001), u32(14), u32(0), u32(1))],
  ['with parameters beyond its end', joined(u16(0x8002), u32(18), u32(0), u32(1), u32(4096))],
])('a response %s is refused', (_, bytes) => {
  expect(() => readResponse(bytes, { name: 'load', hasHandle: true, sessions: 1 })).toThrow(/^decode TPM response at/)
})

test('values of PCRs must be as many as were selected', () => {
  const answer = joined(u32(1), writePcrSelection({ bank: 'sha256', pcrs: [7, 11] }), u32(1), sized(new Uint8Array(32)))
  expect(() => readPcrValues(answer, 'sha256')).toThrow('1 values of 2 PCRs')
})

test('coordinates of a key may lack zeros in front, another kind of key is refused', () => {
  const fixed = storageRootTemplate.subarray(0, -68)
  const { x, y } = readStorageRoot(joined(fixed, sized(Uint8Array.of(5)), sized(new Uint8Array(32).fill(6))))
  expect([x.length, x[31], y[0]]).toEqual([32, 5, 6])
  expect(() => readStorageRoot(joined(u16(1), fixed.subarray(2), u8(0)))).toThrow('it is not of the kind that was requested')
})

test('signatures of policies are read as they are written', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signature = signPolicy(privateKey, 'sha256', [11], emptyPolicy)
  expect(parsePcrSignatures(JSON.stringify({ sha256: [signature] }))).toEqual({ sha256: [signature] })
  expect(() => parsePcrSignatures('{"sha256":[{"pcrs":[24]}]}')).toThrow(/^decode PCR signatures at 0: sha256\.0\.pcrs\.0: /)
  const key = parsePolicyKey(publicKey.export({ type: 'spki', format: 'pem' }).toString())
  expect([key.exponent, key.modulus.length, key.fingerprint]).toEqual([65537, 256, signature.pkfp])
  expect(policyKeyPublic(key).length).toBe(2 + 2 + 4 + 2 + 2 + 2 + 2 + 4 + 2 + 256)
  expect(nameOf(policyKeyPublic(key)).length).toBe(34)
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
  expect(() => parsePolicyKey(ec.export({ type: 'spki', format: 'pem' }).toString())).toThrow('no RSA key in PEM')
})
