/**
 * Two slots hold two releases side by side. A new release is on trial: the boot loader counts its boots down and falls back to
 * the slot last marked good when they are used up, whatever prevented the release from coming up. The slot last marked good is
 * never written.
 */
import type { StatusName } from '../../../rpc/status.ts'
import { apiStatus } from '../../../wire/api-status.ts'
import type { FatVolume } from '../../../wire/fat/volume.ts'

/** One of the two release slots. */
export type Slot = 'a' | 'b'

/** Number of boots of a release on trial before the boot loader falls back. */
export const trialStarts = 3

/** The content of a slot. */
export interface SlotContent {
  /** Such as `v1.13.100`. */
  readonly version: string
  /** Root hash of the dm-verity tree, in hex. */
  readonly rootHash: string
  /** First 16 digits of the manifest's SHA-256: distinguishes two images of one version. */
  readonly image: string
  /** Kinds of encrypted volumes that the release declares to open. */
  readonly encryption?: readonly string[]
}

/** The state of the boot loader. */
export interface BootState {
  readonly slots: Readonly<Partial<Record<Slot, SlotContent>>>
  /** The slot last marked good. */
  readonly good?: Slot
  /** The slot on trial, and the number of boots it has left. */
  readonly trial?: { readonly slot: Slot; readonly left: number }
  /** The slot that boots next. */
  readonly next?: Slot
}

/** A release to be written into a slot. */
export interface SlotRelease extends SlotContent {
  /** Kernel parameters. */
  readonly commandLine: string
  /** Files of the release, by their names in the manifest. */
  size(name: string): number
  sha256(name: string): string
  open(name: string): AsyncIterable<Uint8Array>
}

/** A boot loader that manages two slots. Every step survives a power cut. */
export interface BootLoader {
  readonly kind: 'systemd-boot' | 'grub'
  state(): Promise<BootState>
  /** Creates its directories and configuration. */
  prepare(): Promise<void>
  /** Writes what the firmware boots. From then on the disk is bootable, so it comes last. GRUB's is outside of the file system. */
  arm?(open: (name: string) => AsyncIterable<Uint8Array>, size: (name: string) => number): Promise<void>
  /** Writes a release into a slot that is not marked good; nothing boots it yet. */
  write(slot: Slot, release: SlotRelease): Promise<void>
  /** Puts a slot on trial: it boots next, until it is marked good or its boots are used up. */
  try(slot: Slot): Promise<void>
  /** Marks a slot good. */
  keep(slot: Slot): Promise<void>
  /** Kernel and initramfs of a slot for kexec, which bypasses the firmware; only without Secure Boot. */
  start?(slot: Slot): Promise<{ kernel: Uint8Array; initramfs: Uint8Array }>
  /** Ends a failed trial: the slot last marked good boots next. */
  giveUp(): Promise<void>
  /** Renews the boot loader itself, where it is known how the firmware starts it. */
  readonly renewal?: LoaderRenewal | undefined
}

/** The renewal of a boot loader, which `write` put beside the one in use when the release has another. */
export interface LoaderRenewal {
  /** Has the next start take the new one, if there is one and the firmware can start it once. */
  try(): Promise<void>
  /** Makes the new one permanent on this machine, which is healthy. Undefined when there is none. */
  settle(): Promise<Renewal | undefined>
}

/**
 * What became of a new boot loader: it is in use from now on, the firmware did not start it, or its time is still to come; it was
 * damaged while it waited, the one of the disk is another system's, or there is no room beside that.
 */
export type Renewal = 'renewed' | 'failed' | 'waiting' | 'damaged' | 'foreign' | 'no-room'

/** The step would endanger the bootable release. */
export class SlotError extends Error {
  override name = 'SlotError'

  get [apiStatus](): StatusName {
    return 'FailedPrecondition'
  }
}

/** A slot that is not written, because the machine returns to it. */
export const goodSlot = (slot: Slot) => new SlotError(`slot ${slot.toUpperCase()} is the one last marked good and is not written`)

/** A slot that cannot be started. */
export const emptySlot = (slot: Slot) => new SlotError(`slot ${slot.toUpperCase()} holds no release`)

/** The other slot. */
export function otherSlot(slot: Slot): Slot {
  return slot === 'a' ? 'b' : 'a'
}

/** Path of the root file system with this hash on a medium. */
export function rootFile(rootHash: string): string {
  return `/ichor/${rootHash.slice(0, 16)}.sqsh`
}

/** Writes a file under a name derived from its content, once. An existing file is complete unless found damaged. */
export async function putByContent(volume: FatVolume, path: string, release: SlotRelease, name: string): Promise<void> {
  if (await volume.has(path)) {
    if ((await digestOf(volume, path)) === release.sha256(name)) return
    await volume.remove(path)
  }
  await volume.create(path, checked(release, name), release.size(name))
}

/** SHA-256 of a file in hex. */
export async function digestOf(volume: FatVolume, path: string): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const part of volume.stream(path)) hash.update(part)
  return hash.digest('hex')
}

/** Reads a file; throws at its end if it differs from the manifest, so that the file is never renamed into place. */
export async function* checked(release: SlotRelease, name: string): AsyncGenerator<Uint8Array> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const part of release.open(name)) {
    hash.update(part)
    yield part
  }
  if (hash.digest('hex') !== release.sha256(name)) throw new SlotError(`file "${name}" of the image is damaged: take the image again`)
}

/** Writes a text unless the file has it already. */
export async function replaceFile(volume: FatVolume, path: string, text: string): Promise<void> {
  const bytes = Buffer.from(text)
  if ((await volume.has(path)) && Buffer.compare(await volume.read(path), bytes) === 0) return
  await volume.replace(path, bytes)
}

/** A file of the boot partition. */
export interface BootFile {
  readonly path: string
  readonly size: number
}

/** Root file systems not used by any kept slot. */
export async function superfluousRoots(volume: FatVolume, kept: readonly string[]): Promise<BootFile[]> {
  const names = new Set(kept.map((hash) => rootFile(hash)))
  return (await filesIn(volume, '/ichor')).filter(
    ({ path }) => /^\/ichor\/[0-9a-f]{16}\.sqsh$/i.test(path) && !names.has(path.toLowerCase()),
  )
}

/** The files of a directory, not recursively. */
export async function filesIn(volume: FatVolume, folder: string): Promise<BootFile[]> {
  return (await volume.list(folder)).filter(({ directory }) => !directory).map(({ name, size }) => ({ path: `${folder}/${name}`, size }))
}

/** Throws if the release does not fit even after removing these files; called before any is removed. */
export function requireRoom(volume: FatVolume, release: SlotRelease, names: readonly string[], superfluous: readonly BootFile[]): void {
  const needed = names.reduce((sum, name) => sum + release.size(name), 0)
  const room = superfluous.reduce((sum, { size }) => sum + size, volume.free)
  const megabytes = (bytes: number) => Math.ceil(bytes / (1 << 20))
  if (room < needed)
    throw new SlotError(
      `the boot partition is too small: the image takes ${megabytes(needed)} MiB, ${megabytes(room)} MiB are free; nothing was changed`,
    )
}

/** Adds the slot to the kernel parameters, unless they are sealed. */
export function withSlot(commandLine: string, slot: Slot): string {
  return [...commandLine.split(/\s+/).filter((word) => word !== '' && !word.startsWith('ichor.slot=')), `ichor.slot=${slot}`].join(' ')
}
