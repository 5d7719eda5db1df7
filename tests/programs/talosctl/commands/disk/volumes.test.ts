import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { escrowOf } from '../../../../../src/os/block/encryption/recovery.ts'
import { serverStream, unary } from '../../../../../src/rpc/server/method.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { newIdentity, parseIdentity, parseRecipient, recipientOf } from '../../../../../src/wire/age/keys.ts'
import { newRecoveryKey } from '../../../../../src/wire/luks2/recovery-key.ts'
import { talosctl } from '../../peer.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-volumes-'))
afterAll(() => rmSync(folder, { recursive: true }))
const key = newRecoveryKey()

const admins = ['os:admin'] as const
const received: unknown[] = []
const identity = newIdentity()
const escrow = await escrowOf(key, [parseRecipient(recipientOf(parseIdentity(identity)))])
const methods = [
  serverStream('cosi.resource.State/List', admins, async function* ({ type }) {
    expect(type).toBe('VolumeRecoveries.block.ichor.dev')
    for (const id of ['EPHEMERAL', 'STATE'])
      yield { resource: { metadata: { id }, spec: { yamlSpec: stringify({ locked: false, keys: [{ slot: 31, escrow }] }) } } }
  }),
  unary('ichor.v1.VolumeService/NewRecoveryKey', admins, ({ recipients }) => {
    received.push(recipients)
    return { messages: [{ key, volumes: ['STATE', 'EPHEMERAL'], failed: ['u-data: the KMS does not answer'] }] }
  }),
  unary('ichor.v1.VolumeService/Unlock', admins, ({ recoveryKey }) => {
    if (recoveryKey !== key) throw new RpcError('PermissionDenied', 'unlock: the key opens none of the volumes STATE')
    return { messages: [{ volumes: ['STATE'] }] }
  }),
]
const redacted = serverStream('cosi.resource.State/List', admins, async function* () {
  yield { resource: { metadata: { id: 'STATE' }, spec: { yamlSpec: stringify({ locked: false, keys: [{ slot: 31, escrow: '' }] }) } } }
})
const run = (...args: string[]) => talosctl(methods, ['volumes', ...args])
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

test('a key is printed once, as text and as a code', async () => {
  const { code, stdout, stderr } = await run('recovery-key', '--recipient', 'age1a', '--recipient', 'age1b')
  expect(code).toBe(0)
  expect(stdout.split('\n')[0]).toBe(key)
  expect(stdout).toContain('█▀▀▀▀▀█')
  expect(stderr).toContain('The recovery key of STATE, EPHEMERAL.')
  expect(stderr).toContain('it does not open u-data: the KMS does not answer\n')
  expect(stderr).not.toContain(key)
  expect(received.at(-1)).toEqual(['age1a', 'age1b'])
  expect((await run('recovery-key', '--no-qr')).stdout).toBe(`${key}\n`)
})

test('a key is read from a file, never from an argument, and checked before it is sent', async () => {
  const unlocked = await run('unlock', '--recovery-key-file', file('key', ` ${key.toLowerCase()}\n`))
  expect([unlocked.code, unlocked.stdout]).toEqual([0, 'unlocked STATE\n'])
  const other = await run('unlock', '--recovery-key-file', file('other', newRecoveryKey()))
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('the key opens none of the volumes STATE')])
  const mistyped = await run(
    'unlock',
    '--recovery-key-file',
    file(
      'mistyped',
      key.replace(/^./, (letter) => (letter === '7' ? '8' : '7')),
    ),
  )
  expect(mistyped.stderr).toContain('the recovery key is mistyped')
  expect((await run('unlock')).stderr).toContain('use --recovery-key, which reads the key from standard input')
  expect((await run('unlock', '--recovery-key', '--recovery-key-file', 'x')).stderr).toContain('use --recovery-key, which reads')
})

test('the key that a node encrypted to a recipient is shown with the identity, and with no other', async () => {
  const shown = await run('recovery-key', '--no-qr', '--identity', file('identity', `${identity}\n`))
  expect(shown).toEqual({ code: 0, stdout: `${key}\n`, stderr: 'The recovery key of EPHEMERAL, STATE.\n' })
  const other = await run('recovery-key', '--identity', file('stranger', newIdentity()))
  expect([other.code, other.stdout, other.stderr]).toEqual([
    1,
    '',
    expect.stringContaining('the identity reads no recovery key: EPHEMERAL: '),
  ])
  expect((await run('recovery-key', '--identity', 'x', '--recipient', 'age1a')).stderr).toContain(
    'use --recipient to make a key, or --identity',
  )
  expect((await run('recovery-key', '--insecure')).stderr).toContain('--insecure is for --identity')
  expect((await talosctl([redacted], ['volumes', 'recovery-key', '--identity', file('identity', identity)])).stderr).toContain(
    'the node shows no recovery key for recipients',
  )
})
