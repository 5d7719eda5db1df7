/** The options of `./mkimage.sh`. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { codeOf } from '../../src/wire/errno.ts'
import { messageOf } from '../../src/wire/error-message.ts'
import { dist } from '../build/binary.ts'
import { UsageError } from '../build/failure.ts'
import { type KubernetesRelease, kubernetesRelease, kubernetesReleases } from '../build/kubernetes.ts'
import { type Target, targetOf } from '../build/target.ts'
import { type KernelKind, kernelKinds } from '../kernel/kind.ts'
import { type OverlayRequest, overlayRequest } from './overlay/overlay.ts'
import { profileArguments } from './profile.ts'

/** The help, with every flag. */
export const help = `Makes everything a machine starts from, in dist/:
  ichor-amd64.iso                for CD and USB stick, BIOS and UEFI
  ichor-amd64.raw, .qcow2        a disk with the system on it; .vhd, .raw.tar.gz, .vmdk, .ova on request
  ichor-amd64.efi                the unified kernel image
  ichor-vmlinuz, ichor-initramfs, ichor-cmdline
                                 for machines started through a network; the root is in the initramfs
  ichor-installer-amd64.tar      installer image (OCI layout), for installs and upgrades
  ichor-installer.tar            the same for amd64 and arm64 under one index, when both were made into one folder
  ichor-node-amd64.tar           container image of the system (OCI layout), for Docker, Podman and pods
  ichor-amd64.manifest, .sig     what a release consists of, signed
  ichor-amd64.spdx.json          what it was made of
  ichor-amd64.vex.json           which known flaws do not concern it, and why (OpenVEX)
  ichor-SHA256SUMS, .sig         hashes of the above, signed

usage: ./mkimage.sh [flags]

  --profile FILE             a profile of the imager in YAML, "-" for standard input: what to make and of what
  --arch amd64|arm64         the processor of the machines (amd64); arm64 is cross-built, starts by UEFI only, and has its name in
                             every file name, as in ichor-vmlinuz-arm64
  --output FOLDER            where the files go (dist/)
  --kubernetes VERSION       the release of Kubernetes inside: ${kubernetesReleases
    .map(({ version }) => `v${version}`)
    .join(' (default), ')
    .replace(/, ([^,]*)$/, ' or $1')}
  --kernel debian|hardened   the one that Debian has compiled and signed (debian), or one compiled here with every protection that
                             docs/kernel.md lists, for amd64
  --platform NAME            where the configuration comes from (metal)
  --extra-kernel-arg ARG     one more kernel parameter, or with "-" before its name one less; may be repeated
  --meta TAG=VALUE           a value of META, with a tag as in 0xa: on disks in META, otherwise a kernel parameter that a machine
                             without META takes values from; may be repeated
  --embed-config FILE        a machine configuration that the image carries; everyone who has the image can read it
  --system-extension-image IMAGE
                             an extension that becomes part of the system: an OCI archive, a folder in the
                             OCI layout or a reference; may be repeated
  --image-cache IMAGES       container images that ISO and disk carry: a folder or an image as "talosctl image cache-create" makes
                             them, or a reference of such an image
  --overlay-name rpi_generic a disk for boards with arm64: Raspberry Pi 4, 400 and Compute Module 4; goes with --only disk
  --overlay-image IMAGE      what the firmware of such boards consists of: an image as above, or a folder laid out as its root
  --overlay-option KEY=VALUE an option of the overlay, configTxt or configTxtAppend; "=@FILE" takes a file; may be repeated
  --firmware FOLDER          files for drivers that ask for firmware, as below /lib/firmware
  --key FILE                 Ed25519 key in PEM that signs (made on first use in ~/.config/ichor/image-key.pem)
  --secure-boot-key FILE     RSA key in PEM that signs boot loader and kernel image for Secure Boot
  --secure-boot-cert FILE    its certificate in PEM
  --pcr-key FILE             RSA key in PEM that signs what a TPM measures of the kernel image, so that volumes can be
                             sealed to images of this key
  --sd-boot-enroll-keys HOW  if-safe: the boot menu offers to trust that certificate (default)
                             force: a machine in setup mode trusts it without confirmation; off: neither
  --disk-firmware uefi|bios  what the disk is started by (uefi)
  --disk-formats raw,vhd,…   raw, qcow2 (both by default), vhd for Azure, gcp for Google Cloud, vmdk and ova for VMware
  --only iso,pxe,…           only some of: iso, disk, pxe, installer, uki, oci
  --fast                     packed quickly and less tightly, for daily work
  --locked                   takes exactly the Debian packages that the lock files name, or nothing (default)
  --unlocked                 takes a newer version where the archive no longer has the one that is named
  --lock                     uses the current archive and rewrites the lock files
  --check-reproducible       makes everything a second time elsewhere, as another user and from nothing, and compares
  --help                     this text
`

/** A value of META. */
export interface MetaValue {
  readonly key: number
  readonly value: string
}

/** What to build. */
export interface ImageOptions {
  target: Target
  output: string
  kubernetes: KubernetesRelease
  kernel: KernelKind
  platform: string
  extraKernelArgs: string[]
  meta: readonly MetaValue[]
  embedConfig?: string | undefined
  extensions: string[]
  imageCache?: string | undefined
  overlay?: OverlayRequest | undefined
  firmware?: string | undefined
  key?: string | undefined
  secureBoot?: { key: string; certificate: string } | undefined
  pcrKey?: string | undefined
  enroll: 'if-safe' | 'force' | 'off'
  diskFirmware: 'uefi' | 'bios'
  diskFormats: ReadonlySet<DiskFormat>
  only: ReadonlySet<Product>
  fast: boolean
  locked: boolean
  relock: boolean
  checkReproducible: boolean
}

/** What can be made. */
export const products = ['iso', 'disk', 'pxe', 'installer', 'uki', 'oci'] as const
export type Product = (typeof products)[number]

/** What a disk can be written as. */
export const diskFormats = ['raw', 'qcow2', 'vhd', 'gcp', 'vmdk', 'ova'] as const
export type DiskFormat = (typeof diskFormats)[number]

const flags = {
  profile: { type: 'string' },
  arch: { type: 'string', default: 'amd64' },
  output: { type: 'string', default: dist },
  kubernetes: { type: 'string' },
  kernel: { type: 'string', default: 'debian' },
  platform: { type: 'string', default: 'metal' },
  'extra-kernel-arg': { type: 'string', multiple: true, default: [] as string[] },
  meta: { type: 'string', multiple: true, default: [] as string[] },
  'embed-config': { type: 'string' },
  'system-extension-image': { type: 'string', multiple: true, default: [] as string[] },
  'image-cache': { type: 'string' },
  'overlay-name': { type: 'string' },
  'overlay-image': { type: 'string' },
  'overlay-option': { type: 'string', multiple: true, default: [] as string[] },
  firmware: { type: 'string' },
  key: { type: 'string' },
  'secure-boot-key': { type: 'string' },
  'secure-boot-cert': { type: 'string' },
  'pcr-key': { type: 'string' },
  'sd-boot-enroll-keys': { type: 'string', default: 'if-safe' },
  'disk-firmware': { type: 'string', default: 'uefi' },
  'disk-formats': { type: 'string', default: 'raw,qcow2' },
  only: { type: 'string' },
  fast: { type: 'boolean', default: false },
  locked: { type: 'boolean', default: false },
  unlocked: { type: 'boolean', default: false },
  lock: { type: 'boolean', default: false },
  'check-reproducible': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

/** A parameter to be taken away begins with a dash, which would be taken for a flag. */
function joined(args: readonly string[]): string[] {
  const result: string[] = []
  for (let rest = args; rest.length > 0; ) {
    const [flag = '', value] = rest
    const takes = flag === '--extra-kernel-arg' && value !== undefined
    result.push(takes ? `${flag}=${value}` : flag)
    rest = rest.slice(takes ? 2 : 1)
  }
  return result
}

/** Arguments beside a profile: where the files go, how they are signed and made. */
const besideProfile = [
  'output',
  'kubernetes',
  'kernel',
  'firmware',
  'key',
  'fast',
  'locked',
  'unlocked',
  'lock',
  'check-reproducible',
  'help',
]

/** The arguments with those that a profile stands for. Throws UsageError. */
function withProfile(args: readonly string[]): string[] {
  const { values, tokens } = parseArgs({ args: [...args], options: flags, strict: false, tokens: true })
  const { profile } = values
  if (typeof profile !== 'string' || values.help) return [...args]
  const given = tokens.flatMap((token) => (token.kind === 'option' && Object.hasOwn(flags, token.name) ? [token.name] : []))
  const other = given.find((name) => name !== 'profile' && !besideProfile.includes(name))
  if (other) throw new UsageError(`--${other}: give it in the profile, or leave --profile out`)
  if (profile === '-' && values['check-reproducible'])
    throw new UsageError('--check-reproducible reads a profile twice: give a file, not "-"')
  const { args: more, configuration } = profileArguments(readProfile(profile))
  const all = [...args, ...joined(more)]
  return configuration === undefined ? all : [...all, '--embed-config', temporaryFile(configuration)]
}

function readProfile(path: string): Buffer {
  try {
    return readFileSync(path === '-' ? 0 : path)
  } catch (error) {
    throw new UsageError(`--profile "${path}": ${codeOf(error)}`)
  }
}

/** A file with a text, that nobody else reads and that is gone when the build ends. */
function temporaryFile(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-profile-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'config.yaml')
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

/** Parses the arguments; undefined when help is requested. */
export function imageOptions(args: string[]): ImageOptions | undefined {
  let values: ReturnType<typeof parseArgs<{ options: typeof flags; strict: true }>>['values']
  try {
    values = parseArgs({ args: withProfile(joined(args)), options: flags, strict: true }).values
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`${messageOf(error).split('\n')[0]}; ./mkimage.sh --help lists the flags`)
  }
  if (values.help) return undefined
  const { arch, platform, unlocked, lock: relock } = values
  const target = targetOf(arch)
  if (!/^[a-z][a-z0-9-]*$/i.test(platform)) throw new UsageError(`--platform "${platform}": must be a name like "metal"`)
  const enroll = values['sd-boot-enroll-keys']
  if (enroll !== 'if-safe' && enroll !== 'force' && enroll !== 'off')
    throw new UsageError(`--sd-boot-enroll-keys "${enroll}": must be if-safe, force or off`)
  const diskFirmware = values['disk-firmware']
  if (diskFirmware !== 'uefi' && diskFirmware !== 'bios') throw new UsageError(`--disk-firmware "${diskFirmware}": must be uefi or bios`)
  if (diskFirmware === 'bios' && arch !== 'amd64') throw new UsageError(`--disk-firmware bios: no ${arch} machine has a BIOS`)
  const kubernetes = kubernetesRelease(values.kubernetes)
  const chosen = (['locked', 'unlocked', 'lock'] as const).filter((flag) => values[flag])
  if (chosen.length > 1) throw new UsageError(`${chosen.map((flag) => `--${flag}`).join(' and ')} exclude each other`)
  const path = (flag: 'embed-config' | 'firmware' | 'key' | 'secure-boot-key' | 'secure-boot-cert' | 'pcr-key') => {
    const given = values[flag]
    if (given === undefined) return undefined
    if (!existsSync(given)) throw new UsageError(`--${flag} "${given}": there is no such file`)
    if (statSync(given).isDirectory() !== (flag === 'firmware'))
      throw new UsageError(`--${flag} "${given}": must be a ${flag === 'firmware' ? 'folder' : 'file'}`)
    return resolve(given)
  }
  const [key, certificate] = [path('secure-boot-key'), path('secure-boot-cert')]
  if (!key !== !certificate) throw new UsageError('--secure-boot-key and --secure-boot-cert go together')
  const formats = values['disk-formats'].split(',').map((name) => oneOf(diskFormats, '--disk-formats', name))
  if (formats.includes('ova') && arch !== 'amd64') throw new UsageError(`--disk-formats ova: the OVA is described for amd64 only`)
  const only = new Set(values.only === undefined ? products : values.only.split(',').map((name) => oneOf(products, '--only', name)))
  const imageCache = values['image-cache']
  if (imageCache !== undefined && !only.has('iso') && !only.has('disk'))
    throw new UsageError('--image-cache: only ISO and disk carry images, name one of them with --only')
  const overlay = overlayRequest(values['overlay-name'], values['overlay-image'], values['overlay-option'], target)
  if (overlay && values.only !== 'disk') throw new UsageError('--overlay-name: boards start from disks: add --only disk')
  if (overlay && key) throw new UsageError('--overlay-name: the firmware of these boards verifies nothing: leave --secure-boot-key out')
  return {
    target,
    output: resolve(values.output),
    kubernetes,
    kernel: kernelKind(values.kernel, target, values['check-reproducible']),
    platform,
    extraKernelArgs: values['extra-kernel-arg'],
    meta: values.meta.map(metaValue),
    embedConfig: path('embed-config'),
    extensions: values['system-extension-image'].map(located),
    imageCache: imageCache && located(imageCache),
    overlay: overlay && { ...overlay, image: located(overlay.image) },
    firmware: path('firmware'),
    key: path('key'),
    secureBoot: key && certificate ? { key, certificate } : undefined,
    pcrKey: path('pcr-key'),
    enroll,
    diskFirmware,
    diskFormats: new Set(formats),
    only,
    fast: values.fast,
    locked: !unlocked && !relock,
    relock,
    checkReproducible: values['check-reproducible'],
  }
}

function kernelKind(name: string, { arch }: Target, checked: boolean): KernelKind {
  const kind = oneOf(kernelKinds, '--kernel', name)
  if (kind === 'hardened' && arch !== 'amd64') throw new UsageError(`--kernel hardened: its options are for amd64, not for ${arch}`)
  if (kind === 'hardened' && checked)
    throw new UsageError('--check-reproducible: each build of the hardened kernel signs its modules with a key of its own')
  return kind
}

/** A path independent of the current folder; a reference stays one. */
const located = (image: string): string => (existsSync(image) ? resolve(image) : image)

function metaValue(given: string): MetaValue {
  const [, tag = '', value = ''] = /^(0x[0-9a-f]{1,2}|\d{1,3})=([^;]*)$/is.exec(given) ?? []
  const key = Number(tag)
  if (tag === '' || key > 0xff) throw new UsageError(`--meta "${given}": must be a tag up to 0xff and a value without ";", as in 0xa=value`)
  return { key, value }
}

function oneOf<T extends string>(known: readonly T[], flag: string, name: string): T {
  const found = known.find((each) => each === name)
  if (!found) throw new UsageError(`${flag} "${name}": must be some of ${known.join(', ')}`)
  return found
}
