/**
 * Profiles of the imager of the field (YAML), as arguments of `./mkimage.sh`: each key becomes an argument, changes nothing, or is
 * refused in one line.
 */
import * as v from 'valibot'
import { ConfigError, formatIssue } from '../../src/document/config-error.ts'
import { decode } from '../../src/document/decode.ts'
import { anything, flag, listOf, oneOf, section, text, unsigned } from '../../src/document/fields.ts'
import { configLimits, parseStream } from '../../src/document/stream.ts'
import { release } from '../../src/release.ts'
import { UsageError } from '../build/failure.ts'

/** Bytes of a profile, most of which are an embedded configuration. */
const longest = 1 << 20

const file = section({ path: text })
const image = section({ imageRef: text, forceInsecure: flag, tarballPath: text, ociPath: text })
const azure = { azureVaultURL: text, azureKeyID: text, azureKeyVersion: text, azureCertificateID: text }
const aws = { awsKMSKeyID: text, awsRegion: text, awsCertPath: text, awsCertARN: text }
const bootloader = oneOf('none', 'dual-boot', 'sd-boot', 'grub')

const schema = section({
  ...{ baseProfileName: text, arch: text, platform: text, secureboot: flag, name: text, version: text },
  customization: section({
    extraKernelArgs: listOf(text),
    metaContents: listOf(v.object({ key: unsigned(8), value: v.optional(text, '') })),
    embeddedMachineConfiguration: text,
  }),
  input: section({
    ...{ kernel: file, initramfs: file, sdStub: file, sdBoot: file },
    ...{ baseInstaller: image, imageCache: image, overlayInstaller: image, systemExtensions: listOf(image) },
    secureboot: section({
      secureBootSigner: section({ keyPath: text, certPath: text, ...azure, ...aws }),
      pcrSigner: section({ keyPath: text, ...azure, ...aws }),
      ...{ platformKeyPath: text, keyExchangeKeyPath: text, signatureKeyPath: text, includeWellKnownCerts: flag },
    }),
  }),
  overlay: section({ name: text, image, options: v.record(v.string(), anything) }),
  output: section({
    kind: oneOf('iso', 'image', 'installer', 'kernel', 'initramfs', 'uki', 'cmdline'),
    outFormat: oneOf('raw', '.tar.gz', '.xz', '.gz', '.zst'),
    imageOptions: section({ diskSize: anything, diskFormat: oneOf('raw', 'qcow2', 'vhd', 'ova'), diskFormatOptions: text, bootloader }),
    isoOptions: section({ sdBootEnrollKeys: oneOf('if-safe', 'manual', 'force', 'off'), bootloader }),
  }),
})

type Profile = v.InferOutput<typeof schema>
type Output = NonNullable<Profile['output']>
type Kind = NonNullable<Output['kind']>

/** What a profile is: arguments, and a configuration that the image carries. */
export interface ProfileArguments {
  readonly args: readonly string[]
  readonly configuration?: string | undefined
}

/** The arguments that a profile stands for. Throws UsageError. */
export function profileArguments(bytes: Uint8Array): ProfileArguments {
  const profile = decodeProfile(bytes)
  const base = baseOf(profile.baseProfileName)
  const kind = profile.output?.kind ?? base.kind
  if (!kind) throw refused('output.kind', 'is required, or a baseProfileName that has one')
  const secureBoot = profile.secureboot ?? base.secureBoot
  refuseUnknown({ ...profile, secureboot: secureBoot }, kind)
  const platform = profile.platform ?? base.platform ?? 'metal'
  const { customization = {} } = profile
  const args = [
    ...(profile.arch ? ['--arch', profile.arch] : []),
    ...['--platform', platform, '--only', products[kind]],
    ...(customization.extraKernelArgs ?? []).flatMap((each) => ['--extra-kernel-arg', each]),
    ...(customization.metaContents ?? []).flatMap(({ key, value }) => ['--meta', `0x${key.toString(16)}=${value}`]),
    ...(profile.input?.systemExtensions ?? []).flatMap((each, at) => [
      '--system-extension-image',
      imageOf(each, `input.systemExtensions[${at}]`),
    ]),
    ...(profile.input?.imageCache ? ['--image-cache', imageOf(profile.input.imageCache, 'input.imageCache')] : []),
    ...overlayArguments(profile),
    ...(secureBoot ? keyArguments(profile) : []),
    ...(kind === 'image' ? diskArguments(profile.output ?? {}, base.format) : []),
    ...(kind === 'iso' ? isoArguments(profile.output ?? {}) : []),
  ]
  return { args, configuration: customization.embeddedMachineConfiguration || undefined }
}

function decodeProfile(bytes: Uint8Array): Profile {
  try {
    const { documents, lines } = parseStream(bytes, { ...configLimits, bytes: longest, documents: 1 })
    const [document] = documents
    if (!document?.contents) throw new UsageError('--profile: the profile is empty')
    const { value, issues } = decode(document.contents, schema, { document, lines })
    if (issues.length > 0 || !value) throw new ConfigError(issues)
    return value
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new UsageError(`--profile: ${error.issues.slice(0, 5).map(formatIssue).join('; ')}`)
  }
}

const refused = (key: string, why: string) => new UsageError(`--profile: ${key}: ${why}`)

/** What is made of a kind. */
const products: Readonly<Record<Kind, string>> = {
  ...{ iso: 'iso', image: 'disk', installer: 'installer', uki: 'uki' },
  ...{ kernel: 'pxe', initramfs: 'pxe', cmdline: 'pxe' },
}

interface Base {
  readonly kind?: Kind
  readonly platform?: string
  readonly secureBoot: boolean
  readonly format?: string
}

/** Formats of the disks of platforms that take no raw one. */
const formats: Readonly<Record<string, string>> = { gcp: 'gcp', azure: 'vhd', exoscale: 'qcow2', oracle: 'qcow2', vmware: 'ova' }

/** A built-in profile. */
function baseOf(name: string | undefined): Base {
  if (!name) return { secureBoot: false }
  const secureBoot = name.startsWith('secureboot-')
  const rest = name.replace(/^secureboot-/, '')
  if (rest === 'iso' || rest === 'installer') return { kind: rest, secureBoot }
  if (rest === 'metal-uki') return { kind: 'uki', platform: 'metal', secureBoot }
  const format = formats[rest]
  return { kind: 'image', platform: rest, secureBoot, ...(format && { format }) }
}

/** Refuses what no image here has, and what its kind does not take. */
function refuseUnknown({ name, version, customization = {}, input = {}, overlay, output = {}, secureboot }: Profile, kind: Kind): void {
  const own = release.tag
  if (name) throw refused('name', 'files have the names of ./mkimage.sh --help')
  if (version && version !== own) throw refused('version', `these sources make ${own}`)
  if (overlay?.name && kind !== 'image') throw refused('overlay', `not part of ${kind}: boards start from disks`)
  for (const key of ['kernel', 'initramfs', 'sdStub', 'sdBoot'] as const)
    if (input[key]) throw refused(`input.${key}`, 'it is built or taken from the packages of rootfs/image.lock')
  for (const key of ['baseInstaller', 'overlayInstaller'] as const)
    if (input[key]) throw refused(`input.${key}`, 'images are built from these sources')
  if (input.imageCache && kind !== 'iso' && kind !== 'image') throw refused('input.imageCache', `not part of ${kind}`)
  if (input.secureboot && !secureboot) throw refused('input.secureboot', 'needs "secureboot: true"')
  const plain = kind === 'kernel' || kind === 'initramfs'
  if (customization.metaContents?.length && (plain || kind === 'installer'))
    throw refused('customization.metaContents', `not part of ${kind}`)
  if (plain && customization.extraKernelArgs?.length) throw refused('customization.extraKernelArgs', `not part of ${kind}`)
  if (plain && secureboot) throw refused('secureboot', `not part of ${kind}`)
  if (output.imageOptions && kind !== 'image') throw refused('output.imageOptions', `not part of ${kind}`)
  if (output.isoOptions && kind !== 'iso') throw refused('output.isoOptions', `not part of ${kind}`)
  if (kind !== 'image' && output.outFormat && output.outFormat !== 'raw')
    throw refused('output.outFormat', 'files are not compressed: use raw')
}

function imageOf({ imageRef, forceInsecure, tarballPath, ociPath }: v.InferOutput<typeof image>, key: string): string {
  const given = [imageRef, tarballPath, ociPath].filter(Boolean)
  const [one] = given
  if (forceInsecure) throw refused(`${key}.forceInsecure`, 'registries are reached by HTTPS: use an archive')
  if (!one || given.length > 1) throw refused(key, 'needs one of imageRef, tarballPath and ociPath')
  return one
}

function overlayArguments({ overlay }: Profile): string[] {
  if (!overlay) return []
  const { name, image: from, options = {} } = overlay
  if (!name) throw refused('overlay.name', 'is required')
  if (!from) throw refused('overlay.image', 'is required')
  const given = Object.entries(options).map(([key, value]) => {
    if (typeof value !== 'string' || value.startsWith('@'))
      throw refused(`overlay.options.${key}`, 'must be a text that begins without "@"')
    return `${key}=${value}`
  })
  return [
    ...['--overlay-name', name, '--overlay-image', imageOf(from, 'overlay.image')],
    ...given.flatMap((each) => ['--overlay-option', each]),
  ]
}

/** Keys in files; those of clouds, and variables that others have signed, are refused. */
function keyArguments({ input }: Profile): string[] {
  const { secureBootSigner = {}, pcrSigner = {}, ...rest } = input?.secureboot ?? {}
  const signers = Object.entries({ secureBootSigner, pcrSigner })
  for (const [signer, fields] of signers) {
    const remote = Object.keys(fields).find((key) => key in azure || key in aws)
    if (remote) throw refused(`input.secureboot.${signer}.${remote}`, 'keys are files: use keyPath')
  }
  const [other] = Object.entries(rest).flatMap(([key, value]) => (value ? [key] : []))
  if (other) throw refused(`input.secureboot.${other}`, 'what machines enroll is made of the certificate of secureBootSigner')
  return [
    ...['--secure-boot-key', secureBootSigner.keyPath ?? '/secureboot/uki-signing-key.pem'],
    ...['--secure-boot-cert', secureBootSigner.certPath ?? '/secureboot/uki-signing-cert.pem'],
    ...['--pcr-key', pcrSigner.keyPath ?? '/secureboot/pcr-signing-key.pem'],
  ]
}

function diskArguments({ outFormat, imageOptions = {} }: Output, usual = 'raw'): string[] {
  const { diskSize, diskFormat, diskFormatOptions, bootloader: loader } = imageOptions
  if (diskSize)
    throw refused('output.imageOptions.diskSize', 'volumes are created at the first start and use the whole disk: enlarge the disk')
  if (diskFormatOptions) throw refused('output.imageOptions.diskFormatOptions', 'a format has no options')
  if (loader === 'none' || loader === 'dual-boot') throw refused('output.imageOptions.bootloader', `"${loader}": must be sd-boot or grub`)
  const format = diskFormat ?? usual
  if (outFormat === '.tar.gz' && format === 'raw') return [...firmwareOf(loader), '--disk-formats', 'gcp']
  if (outFormat && outFormat !== 'raw' && !(outFormat === '.tar.gz' && format === 'gcp'))
    throw refused('output.outFormat', `"${outFormat}": disks are not compressed, but raw ones as .tar.gz`)
  return [...firmwareOf(loader), '--disk-formats', format]
}

const firmwareOf = (loader: 'sd-boot' | 'grub' | undefined): string[] =>
  loader ? ['--disk-firmware', loader === 'grub' ? 'bios' : 'uefi'] : []

function isoArguments({ isoOptions: { sdBootEnrollKeys, bootloader: loader } = {} }: Output): string[] {
  if (loader && loader !== 'dual-boot') throw refused('output.isoOptions.bootloader', `"${loader}": an ISO has both: use dual-boot`)
  return sdBootEnrollKeys ? ['--sd-boot-enroll-keys', sdBootEnrollKeys] : []
}
