/**
 * Makes a release again that differs where its files cannot be changed in place: in its root, which has the files of system extensions,
 * and in a command line that a signature covers. All of its products lie in one folder afterwards, as if mkimage.sh had made them.
 */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { writeFile as writeText } from 'node:fs/promises'
import { join } from 'node:path'
import type { Segment } from '../../../oci/image.ts'
import { parseManifest } from '../../../oci/image-manifest.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { PeError, peSections, peSigned } from '../../../wire/efi/pe.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { checkKey, described, restated, ukiFile } from '../build/derived.ts'
import { diskFile } from '../build/disk.ts'
import { installerFile, installerSegments } from '../build/installer.ts'
import { isoFile } from '../build/iso.ts'
import { readDocument, withFile } from '../build/read-file.ts'
import { writeFile } from '../build/write-file.ts'
import { FactoryError } from '../factory-error.ts'
import { signatureLine } from '../image-key.ts'
import { parseTrust, rootArchive, trustArchive } from '../release/initramfs.ts'
import { policyKeySection } from '../release/pcr-policy.ts'
import { makeUki } from '../release/uki.ts'
import { fileNameOf, pathOf, type Release } from '../releases.ts'
import { type Extension, extendRoot } from '../root/extend.ts'
import type { Verity } from '../root/verity.ts'
import { withExtensions } from './contents.ts'
import { remakeDisk } from './disk.ts'
import { remakeIso } from './iso.ts'
import { type ReleaseFiles, releaseFilesOf } from './release-files.ts'
import type { Remade } from './remade.ts'
import type { Signers } from './signers.ts'

const networkFile = 'ichor-initramfs'
const rootFile = '.root.sqsh'

/** What the release becomes. */
export interface RemakeOrder {
  readonly extensions: readonly Extension[]
  /** The command line of the release, and that of its kernel image. */
  readonly base: string
  readonly line: string
  readonly signers: Signers
}

/** What of a kernel image is under a signature that changes with it. */
export interface Signatures {
  readonly secureBoot: boolean
  readonly policy: boolean
}

/** What of a kernel image is under a signature that changes with it. Throws FactoryError. */
export const signaturesOf = (release: Release): Promise<Signatures> =>
  withFile(release, ukiFile, async ({ size, read }) => {
    const head = Buffer.from(await read(0, Math.min(size, 64 << 10)))
    try {
      return { secureBoot: peSigned(head), policy: peSections(head, size).some(({ name }) => name === '.pcrsig') }
    } catch (error) {
      throw error instanceof PeError ? new FactoryError(500, `"${ukiFile}" of the release: ${messageOf(error)}`) : error
    }
  })

/** Throws FactoryError without a key that a kernel image is signed with. */
export function checkSigners({ secureBoot, policy }: Signatures, signers: Signers): void {
  const covers = 'covers what the schematic changes: start the factory with'
  if (policy && !signers.pcrKey)
    throw new FactoryError(400, `the PCR policy of the kernel image ${covers} --pcr-key and the key of mkimage.sh`)
  if (secureBoot && !signers.secureBoot)
    throw new FactoryError(
      400,
      `the signature for Secure Boot of the kernel image ${covers} --secure-boot-key and --secure-boot-cert, or --sign-command`,
    )
}

/** Fills a folder, which is made. Throws FactoryError. */
export async function remakeRelease(release: Release, folder: string, order: RemakeOrder, signal: AbortSignal): Promise<void> {
  mkdirSync(folder, { recursive: true })
  try {
    const files = await releaseFilesOf(release)
    const remade = await remakeParts(release, files, { order, folder, signal })
    const to = (file: string) => join(folder, fileNameOf(release, file))
    for (const [name, content] of remade.documents) {
      const file = name === 'cmdline' ? 'ichor-cmdline' : `ichor-amd64.${name}`
      await writeText(to(file), content)
    }
    await writeText(to(ukiFile), remade.uki)
    await writeText(to('ichor-vmlinuz'), remade.kernel)
    const sbom = 'ichor-amd64.spdx.json'
    if (existsSync(pathOf(release, sbom)))
      await writeText(to(sbom), withExtensions(await readDocument(release, sbom, 16 << 20), order.extensions))
    await writeProducts(release, remade, folder, signal)
  } catch (error) {
    if (error instanceof DecodeError || error instanceof PeError) throw new FactoryError(500, `the release: ${messageOf(error)}`)
    throw error
  } finally {
    rmSync(join(folder, rootFile), { force: true })
  }
}

async function writeProducts(release: Release, remade: Remade, folder: string, signal: AbortSignal): Promise<void> {
  const has = (name: string) => existsSync(pathOf(release, name))
  const to = (file: string) => join(folder, fileNameOf(release, file))
  const root: Segment = { file: remade.rootPath, offset: 0, length: remade.verity.blocks * 4096 }
  if (has(isoFile)) await remakeIso(release, remade, folder, signal)
  if (has(diskFile)) await remakeDisk(release, remade, folder, signal)
  if (has(installerFile)) {
    const contents = new Map<string, Segment[]>([
      ...[...remade.documents].map(([name, bytes]): [string, Segment[]] => [name, [{ bytes }]]),
      ['root.sqsh', [root]],
      ['initramfs.xz', [{ bytes: remade.initramfs }]],
      ['vmlinuz.efi', [{ bytes: remade.uki }]],
    ])
    const before = await readDocument(release, 'ichor-amd64.manifest')
    await writeFile(to(installerFile), await installerSegments(release, { before, contents, uki: [] }), signal)
  }
  if (has(networkFile)) {
    const { before, after } = rootArchive(remade.verity)
    await writeFile(to(networkFile), [{ bytes: remade.initramfs }, { bytes: before }, root, { bytes: after }], signal)
  }
}

interface Making {
  readonly order: RemakeOrder
  readonly folder: string
  readonly signal: AbortSignal
}

async function remakeParts(release: Release, files: ReleaseFiles, { order, folder, signal }: Making): Promise<Remade> {
  const { signers, base, line } = order
  const manifest = await readDocument(release, 'ichor-amd64.manifest')
  checkKey(manifest, await readDocument(release, 'ichor-amd64.manifest.sig'), signers.key)
  const [oldUki, oldInitramfs, kernel] = [await files.read('vmlinuz.efi'), await files.read('initramfs.xz'), await files.read('vmlinuz')]
  const trust = parseTrust(oldInitramfs)
  const rootPath = join(folder, rootFile)
  const root = files.stretch('root.sqsh')
  const verity = await makeRoot(rootPath, root, { trust: trust.verity, order, signal })
  const initramfs = Buffer.concat([oldInitramfs.subarray(0, trust.start), trustArchive(verity, trust.publicKey)])
  const uki = await makeKernelImage(files, { oldUki, initramfs, kernel, line, signers })
  const cmdline = Buffer.from(`${line}\n`)
  const changed = new Map([
    ['cmdline', await described([{ bytes: cmdline }])],
    ['initramfs.xz', await described([{ bytes: initramfs }])],
    ['vmlinuz.efi', await described([{ bytes: uki }])],
    ['root.sqsh', await described([{ file: rootPath, offset: 0, length: verity.blocks * 4096 }])],
  ])
  const text = Buffer.from(restated(manifest, changed, verity.rootHash))
  const documents = new Map([
    ['manifest', text],
    ['manifest.sig', Buffer.from(signatureLine(text, signers.key))],
    ['cmdline', cmdline],
  ])
  const names = (of: Uint8Array, image: Uint8Array, rootHash: string) => ({
    rootHash,
    image: hex(of).slice(0, 16),
    kernel: hex(image).slice(0, 16),
  })
  const before = names(Buffer.from(manifest), oldUki, parseManifest(manifest).rootHash)
  return { verity, rootPath, initramfs, kernel, uki, documents, base, line, before, after: names(text, uki, verity.rootHash) }
}

async function makeRoot(
  path: string,
  root: ReturnType<ReleaseFiles['stretch']>,
  { trust, order, signal }: { trust: Verity; order: RemakeOrder; signal: AbortSignal },
): Promise<Verity> {
  if (order.extensions.length > 0) return extendRoot(path, root, trust, { extensions: order.extensions, signal })
  await writeFile(path, [root], signal)
  return trust
}

/** The kernel image of other content, with the signatures that the release's has. Throws FactoryError without the keys. */
async function makeKernelImage(
  files: ReleaseFiles,
  { oldUki, initramfs, kernel, line, signers }: { oldUki: Buffer; initramfs: Buffer; kernel: Buffer; line: string; signers: Signers },
): Promise<Buffer> {
  const section = (name: string) => {
    const found = peSections(oldUki).find((each) => each.name === name)
    return found && oldUki.subarray(found.offset, found.offset + found.size)
  }
  const policyKey = section('.pcrpkey')
  const { pcrKey } = signers
  checkSigners({ secureBoot: peSigned(oldUki), policy: policyKey !== undefined }, signers)
  if (policyKey && pcrKey && !policyKeySection(pcrKey).equals(policyKey))
    throw new FactoryError(500, 'the PCR policy of the release is signed with another key than that of --pcr-key')
  const osRelease = (section('.osrel') ?? Buffer.alloc(0)).toString()
  const made = makeUki({
    stub: await files.read('systemd-stub.efi'),
    osRelease,
    commandLine: line,
    initramfs,
    kernel,
    ...(policyKey && { pcrKey }),
  })
  return peSigned(oldUki) && signers.secureBoot ? signers.secureBoot(made) : made
}

const hex = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
