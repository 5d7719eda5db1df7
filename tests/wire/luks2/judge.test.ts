/** Debian's cryptsetup and this implementation open each other's volumes. cryptsetup is called on files, which needs no rights. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WriteStep } from '../../../src/wire/gpt/table.ts'
import { newVolume } from '../../../src/wire/luks2/format.ts'
import { readHeader } from '../../../src/wire/luks2/header.ts'
import { addSlot, openSlot, removeSlot } from '../../../src/wire/luks2/key-slots.ts'
import { cheap, secret, xts } from './volume.ts'

const program = Bun.which('cryptsetup', { PATH: `${process.env.PATH}:/usr/sbin:/sbin` })
const folder = mkdtempSync(join(tmpdir(), 'luks2-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const size = 20 << 20
const quick = ['--pbkdf-memory', '32', '--pbkdf-parallel', '1', '--pbkdf-force-iterations', '4']

async function cryptsetup(args: readonly string[], passphrase: string): Promise<{ code: number; output: string }> {
  const argv = [program ?? '', ...args, '--disable-locks', '--batch-mode']
  const child = Bun.spawn(argv, { stdin: Buffer.from(passphrase), stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, output: stdout + stderr }
}

const opens = async (file: string, passphrase: string, slot?: number) =>
  (
    await cryptsetup(
      ['open', '--test-passphrase', '--key-file=-', ...(slot === undefined ? [] : ['--key-slot', `${slot}`]), file],
      passphrase,
    )
  ).code === 0

function emptyFile(name: string): string {
  const file = join(folder, name)
  writeFileSync(file, '')
  truncateSync(file, size)
  return file
}

async function write(file: string, steps: readonly WriteStep[]): Promise<void> {
  const handle = await open(file, 'r+')
  for (const { offset, bytes } of steps.flat()) await handle.write(bytes, 0, bytes.length, offset)
  await handle.close()
}

const reading = (file: string) => async (offset: number, length: number) =>
  new Uint8Array(
    await Bun.file(file)
      .slice(offset, offset + length)
      .arrayBuffer(),
  )

describe.skipIf(!program)('cryptsetup', () => {
  test.each([
    ['aes-xts-plain64', 512, '512', []],
    ['aes-xts-plain64', 256, '4096', []],
    ['aes-xts-plain64', 512, '512', ['--pbkdf', 'argon2i']],
    ['aes-xts-plain64', 512, '512', ['--hash', 'sha512']],
  ] as const)('makes a volume (%s, %d, %s, %p) that opens here', async (cipher, keySize, sectorSize, more) => {
    const file = emptyFile(`theirs-${crypto.randomUUID()}`)
    const format = ['luksFormat', '--type', 'luks2', '--cipher', cipher, '--key-size', `${keySize}`, '--sector-size', sectorSize]
    const made = await cryptsetup([...format, ...quick, ...more, '--key-slot', '3', '--key-file=-', file], 'p\nss\0w')
    expect(made).toEqual({ code: 0, output: '' })
    const header = await readHeader(reading(file), size)
    expect(header.damaged).toBeUndefined()
    expect(header.metadata.segments[0]).toMatchObject({ encryption: cipher, sector_size: Number(sectorSize), offset: '16777216' })
    const key = await openSlot(header.metadata, 3, secret('p\nss\0w'), reading(file))
    expect(key?.length).toBe(keySize / 8)
    expect(await openSlot(header.metadata, 3, secret('other'), reading(file))).toBeUndefined()
    const keyFile = join(folder, 'volume-key')
    rmSync(keyFile, { force: true })
    const dump = ['luksDump', '--dump-volume-key', '--volume-key-file', keyFile, '--key-file=-', file]
    expect((await cryptsetup(dump, 'p\nss\0w')).code).toBe(0)
    expect(Buffer.from(key ?? []).equals(readFileSync(keyFile))).toBe(true)
    // A key that is added here works there, and theirs is removed here.
    const added = await addSlot(header, key ?? new Uint8Array(), { slot: 0, passphrase: secret('ours'), cost: cheap })
    await write(file, added.steps)
    expect([await opens(file, 'ours', 0), await opens(file, 'p\nss\0w', 3)]).toEqual([true, true])
    await write(file, removeSlot(added.header, 3).steps)
    expect([await opens(file, 'ours'), await opens(file, 'p\nss\0w')]).toEqual([true, false])
  })

  test.each([
    [xts],
    [{ ...xts, keySize: 32, sectorSize: 4096 }],
    [{ cipher: 'xchacha12,aes-adiantum-plain64', keySize: 32, sectorSize: 4096 }],
    [{ cipher: 'xchacha20,aes-adiantum-plain64', keySize: 32, sectorSize: 512 }],
  ] as const)('opens the volume %j that was made here', async (encryption) => {
    const file = emptyFile(`ours-${crypto.randomUUID()}`)
    const token = { type: 'sideroKMS', keyslots: [], UserData: { sealedData: 'c2VhbGVk' } }
    const made = await newVolume(encryption, { slot: 2, passphrase: secret('p\nss\0w'), cost: { time: 4, memory: 64, cpus: 2 }, token })
    await write(file, made.steps)
    expect([await opens(file, 'p\nss\0w', 2), await opens(file, 'other')]).toEqual([true, false])
    const { output } = await cryptsetup(['luksDump', file], '')
    expect(output).toContain(`UUID:          \t${made.header.uuid}`)
    expect(output).toContain(`cipher: ${encryption.cipher}`)
    expect(output).toContain(`sector: ${encryption.sectorSize} [bytes]`)
    expect((await cryptsetup(['token', 'export', '--token-id', '2', file], '')).output).toContain('"sealedData":"c2VhbGVk"')
    // The other way round: a key that is added there works here.
    writeFileSync(join(folder, 'added'), 'theirs')
    const area = ['--keyslot-cipher', 'aes-xts-plain64', '--keyslot-key-size', '512']
    const added = await cryptsetup(
      ['luksAddKey', '--key-slot', '5', ...area, ...quick, '--key-file=-', file, join(folder, 'added')],
      'p\nss\0w',
    )
    expect(added).toMatchObject({ code: 0 })
    const { metadata, sequence } = await readHeader(reading(file), size)
    expect(sequence).toBeGreaterThan(made.header.sequence)
    expect(Buffer.from((await openSlot(metadata, 5, secret('theirs'), reading(file))) ?? []).equals(made.volumeKey)).toBe(true)
  })

  test('backs up and restores a header that was made here', async () => {
    const file = emptyFile('backup')
    const made = await newVolume(xts, { slot: 0, passphrase: secret('one'), cost: cheap })
    await write(file, made.steps)
    const backup = join(folder, 'header')
    expect((await cryptsetup(['luksHeaderBackup', '--header-backup-file', backup, file], '')).code).toBe(0)
    await write(file, [[{ offset: 0, bytes: new Uint8Array(1 << 20) }]])
    await expect(readHeader(reading(file), size)).rejects.toThrow('no signature')
    expect((await cryptsetup(['luksHeaderRestore', '--header-backup-file', backup, file], '')).code).toBe(0)
    const { metadata } = await readHeader(reading(file), size)
    expect(Buffer.from((await openSlot(metadata, 0, secret('one'), reading(file))) ?? []).equals(made.volumeKey)).toBe(true)
  })
})
