/** What every product of an image shares: the signed release, file by file, as it lies in `/usr/install/<arch>/`. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json'
import { formatManifest } from '../../src/oci/image-manifest.ts'
import { publicLine, signatureLine } from '../../src/programs/factory/image-key.ts'
import { makeUki } from '../../src/programs/factory/release/uki.ts'
import { appendVerity, type Verity } from '../../src/programs/factory/root/verity.ts'
import { encryptionProviders } from '../../src/wire/luks2/metadata.ts'
import { policyKeyFingerprint, policyKeyWord } from '../../src/wire/tpm2/pcr-signatures.ts'
import { hashFile } from '../build/cache.ts'
import type { Target } from '../build/target.ts'
import type { Grub } from './grub.ts'
import { makeGrub } from './grub.ts'
import { makeInitramfs } from './initramfs.ts'
import type { Starters } from './kernel.ts'
import { type SecureBootKeys, signProgram } from './secure-boot.ts'

/** Version of the system, as in `v1.13.100`. */
export const version = `v${packageJson.version}`

/** What a release is made of. */
export interface ReleaseParts {
  target: Target
  starters: Starters
  stage0: string
  /** The packed root, without its tree of hashes; it is moved into the folder. */
  root: string
  commandLine: string
  /** Version of Kubernetes inside, as in `1.36.3`. */
  kubernetes: string
  key: KeyObject
  secureBoot?: SecureBootKeys | undefined
  /** Signs the PCR policy of the kernel image. */
  pcrKey?: KeyObject | undefined
}

/** A release in a folder of its own. */
export interface Release {
  folder: string
  /** Names of its files, the manifest first. */
  names: string[]
  verity: Verity
  target: Target
  /** Absent where no machine has a BIOS. */
  grub?: Grub | undefined
  commandLine: string
  /** Name of a file that only media of this release have. */
  marker: string
}

/** Makes the files of a release in a folder. */
export async function makeRelease(folder: string, parts: ReleaseParts, at: (what: string) => void): Promise<Release> {
  const { target, starters, stage0, root, commandLine, kubernetes, key, secureBoot, pcrKey } = parts
  const put = (name: string, content: Uint8Array | string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  mkdirSync(folder, { recursive: true })
  at('hashing the root')
  renameSync(root, join(folder, 'root.sqsh'))
  const verity = await appendVerity(join(folder, 'root.sqsh'))
  at('packing the initramfs')
  const initramfs = await makeInitramfs({ kernel: starters.kernel, arch: target.arch, stage0, verity, publicKey: publicLine(key) })
  const kernel = readFileSync(starters.kernel.image)
  const stub = readFileSync(starters.systemd.stub)
  const loader = readFileSync(starters.systemd.loader)
  const uki = makeUki({ stub, osRelease: osRelease(), commandLine, initramfs, kernel, pcrKey })
  const sign = async (program: Buffer) => (secureBoot ? signProgram(program, secureBoot, folder) : program)
  at('putting boot loaders together')
  const marker = `${verity.rootHash.slice(0, 16)}.id`
  const grub = starters.grub === undefined ? undefined : await makeGrub(starters.grub, folder, marker)
  put('vmlinuz', kernel)
  put('initramfs.xz', initramfs)
  put('cmdline', `${commandLine}\n`)
  put('vmlinuz.efi', await sign(uki))
  put('systemd-boot.efi', await sign(loader))
  put('systemd-stub.efi', stub)
  if (grub) {
    put('grub/boot.img', grub.boot)
    put('grub/core.img', grub.core)
  }
  const names = [
    ...['cmdline', ...(grub ? ['grub/boot.img', 'grub/core.img'] : []), 'initramfs.xz', 'root.sqsh', 'systemd-boot.efi'],
    ...['systemd-stub.efi', 'vmlinuz', 'vmlinuz.efi'],
  ]
  at('signing')
  const files = await Promise.all(names.map(async (name) => ({ name, ...(await hashFile(join(folder, name))) })))
  const manifest = formatManifest({
    version,
    arch: target.arch,
    kubernetes: `v${kubernetes}`,
    kernel: starters.kernel.release,
    rootHash: verity.rootHash,
    encryption: [...encryptionProviders, ...(pcrKey ? [policyKeyWord(policyKeyFingerprint(createPublicKey(pcrKey)))] : [])],
    files: files.map(({ name, size, sha256 }) => ({ name, size, sha256 })),
  })
  put('manifest', manifest)
  put('manifest.sig', signatureLine(Buffer.from(manifest), key))
  return { folder, names: ['manifest', 'manifest.sig', ...names], target, verity, grub, commandLine, marker }
}

/** Who the kernel image is, for boot menus (os-release(5)). */
const osRelease = () => `NAME="Ichor"\nID=ichor\nVERSION_ID="${version}"\nPRETTY_NAME="Ichor ${version}"\n`

/** Bytes of a file of the release. */
export const fileOf = ({ folder }: Release, name: string): Buffer => readFileSync(join(folder, name))

/** Size of a file of the release. */
export const sizeOf = ({ folder }: Release, name: string): number => statSync(join(folder, name)).size
