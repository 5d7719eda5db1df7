/** Releases whose kernel image is under a signature: for Secure Boot, or of a PCR policy. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Builds } from '../../../src/programs/factory/build/builds.ts'
import { type Signers, signingCommand } from '../../../src/programs/factory/remake/signers.ts'
import { peSigned } from '../../../src/wire/efi/pe.ts'
import { stubOf } from '../../rootfs/program.ts'
import { readIso } from '../../rootfs/read-iso.ts'
import { type Inside, line, uki, version, withRoot, writeProducts } from './built.ts'
import { newFolder, releaseKey, served } from './served.ts'

const [boot, policy, work] = [newFolder(), newFolder(), newFolder()]
const pcrKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const stub = stubOf(252)
let inside: Inside

/** A program with a table of certificates, as one that is signed. */
function signed(program: Buffer): Buffer {
  const image = Buffer.from(program)
  image.writeUInt32LE(16, 0x98 + 108)
  image.writeUInt32LE(8, 0x98 + 112 + 4 * 8 + 4)
  return image
}

beforeAll(async () => {
  inside = { ...(await withRoot(work)), stub }
  await writeProducts(boot, signed(uki(line, inside.initramfs, { stub })), 'amd64', inside)
  await writeProducts(policy, uki(line, inside.initramfs, { stub, pcrKey }), 'amd64', inside)
})
afterAll(() => {
  for (const folder of [boot, policy, work]) rmSync(folder, { recursive: true })
})

async function isoOf(folder: string, signers: Signers): Promise<{ status: number; bytes: Buffer; reason: string }> {
  const builds = new Builds()
  await using factory = served(folder, { workshop: { builds, signers } })
  const body = JSON.stringify({ customization: { extraKernelArgs: ['ip=dhcp'] } })
  const { id } = (await (await factory.ask('/schematics', { method: 'POST', body })).json()) as { id: string }
  const answer = await factory.ask(`/image/${id}/${version}/metal-amd64.iso`)
  const bytes = Buffer.from(await answer.arrayBuffer())
  builds.close()
  return { status: answer.status, bytes, reason: answer.status === 200 ? '' : bytes.toString() }
}

const key = releaseKey

test('arguments of a kernel image for Secure Boot are signed again, once', async () => {
  const programs: Buffer[] = []
  const secureBoot = async (program: Buffer) => {
    programs.push(program)
    return signed(program)
  }
  const { reason, bytes } = await isoOf(boot, { key, secureBoot })
  expect(reason).toBe('')
  const { files } = readIso(bytes)
  const wanted = uki(`${line} ip=dhcp`, inside.initramfs, { stub })
  expect(programs.map((program) => program.equals(wanted))).toEqual([true])
  expect(files.get('usr/install/amd64/vmlinuz.efi')?.equals(signed(wanted))).toBe(true)
  expect(files.get('boot/grub/grub.cfg')?.toString()).toContain(`${line} ip=dhcp`)
}, 30_000)

test('the PCR policy of a kernel image is signed again', async () => {
  const { reason, bytes } = await isoOf(policy, { key, pcrKey })
  expect(reason).toBe('')
  const wanted = uki(`${line} ip=dhcp`, inside.initramfs, { stub, pcrKey })
  expect(readIso(bytes).files.get('usr/install/amd64/vmlinuz.efi')?.equals(wanted)).toBe(true)
}, 30_000)

test.each<[string, () => [string, Signers], string]>([
  ['no key for Secure Boot', () => [boot, { key }], 'start the factory with --secure-boot-key and --secure-boot-cert, or --sign-command'],
  ['no key of the policy', () => [policy, { key }], 'start the factory with --pcr-key and the key of mkimage.sh'],
  [
    'another key of the policy',
    () => [policy, { key, pcrKey: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey }],
    'signed with another key than that of --pcr-key',
  ],
])('with %s the image is refused in one line', async (_, of, reason) => {
  expect((await isoOf(...of())).reason).toContain(reason)
})

test('a command signs, and what it leaves is looked at', async () => {
  const program = uki(line)
  const script = (code: string) => (plain: string, to: string) => [process.execPath, '-e', code, plain, to]
  const copy = "require('fs').copyFileSync(process.argv[1], process.argv[2])"
  const mark = `const b = require('fs').readFileSync(process.argv[1]); b.writeUInt32LE(16, ${0x98 + 108}); b.writeUInt32LE(8, ${0x98 + 148}); require('fs').writeFileSync(process.argv[2], b)`
  expect(peSigned(await signingCommand(script(mark))(program))).toBe(true)
  await expect(signingCommand(script(copy))(program)).rejects.toThrow('has left a program without a signature')
  await expect(signingCommand(script('process.exit(3)'))(program)).rejects.toThrow('ended with 3')
  await expect(signingCommand(() => [join(work, 'none')])(program)).rejects.toThrow('ENOENT')
})
