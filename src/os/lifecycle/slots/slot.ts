/**
 * Two slots hold two releases side by side. A release that is new is on trial: the boot loader counts its starts down and
 * goes back to the slot last marked good when they are used up, whoever it was that did not come up. The slot last marked
 * good is never written.
 */
import type { FatVolume } from '../../../wire/fat/volume.ts'

/** One of the two places for a release. */
export type Slot = 'a' | 'b'

/** How often a release on trial is started before the boot loader goes back. */
export const trialStarts = 3

/** What lies in a slot. */
export interface SlotContent {
  /** As in `v1.13.100`. */
  readonly version: string
  /** Of the hash tree over the root file system, in hex. */
  readonly rootHash: string
  /** Beginning of the SHA-256 of the manifest, 16 digits: two images of one version differ in it. */
  readonly image: string
}

/** What the boot loader will do. */
export interface BootState {
  readonly slots: Readonly<Partial<Record<Slot, SlotContent>>>
  /** The slot last marked good. */
  readonly good?: Slot
  /** A slot on trial, and how many starts it has left. */
  readonly trial?: { readonly slot: Slot; readonly left: number }
  /** The slot that starts next. */
  readonly next?: Slot
}

/** A release as it is written into a slot. */
export interface SlotRelease extends SlotContent {
  /** Kernel parameters. */
  readonly commandLine: string
  /** Files of the release by the names of its manifest. */
  size(name: string): number
  sha256(name: string): string
  open(name: string): AsyncIterable<Uint8Array>
}

/** A boot loader's way of keeping two slots; every step survives a power cut. */
export interface BootLoader {
  readonly kind: 'systemd-boot' | 'grub'
  state(): Promise<BootState>
  /** Makes its folders and its configuration. */
  prepare(): Promise<void>
  /** Puts in place what the firmware starts. As soon as it is there the disk is started from, so it comes last. GRUB's is outside of the file system. */
  arm?(open: (name: string) => AsyncIterable<Uint8Array>, size: (name: string) => number): Promise<void>
  /** Writes a release into a slot that is not good; nothing starts it yet. */
  write(slot: Slot, release: SlotRelease): Promise<void>
  /** The next start tries this slot, and so do those after it until it is kept or its tries are used up. */
  try(slot: Slot): Promise<void>
  /** Marks a slot good. */
  keep(slot: Slot): Promise<void>
  /** What a slot starts, for a kernel that starts it without the firmware; only where nobody has to vouch for it. */
  start?(slot: Slot): Promise<{ kernel: Uint8Array; initramfs: Uint8Array }>
  /** Ends a trial without success: the slot last marked good starts next. */
  giveUp(): Promise<void>
}

/** Thrown when a step would endanger what starts. */
export class SlotError extends Error {
  override name = 'SlotError'
}

/** The other one. */
export function otherSlot(slot: Slot): Slot {
  return slot === 'a' ? 'b' : 'a'
}

/** Where the root file system of this hash lies on a medium. */
export function rootFile(rootHash: string): string {
  return `/ichor/${rootHash.slice(0, 16)}.sqsh`
}

/** Writes a file under a name made from its content, once: what is there under it is complete, unless it is found damaged. */
export async function putByContent(volume: FatVolume, path: string, release: SlotRelease, name: string): Promise<void> {
  if (await volume.has(path)) {
    const hash = new Bun.CryptoHasher('sha256')
    for await (const part of volume.stream(path)) hash.update(part)
    if (hash.digest('hex') === release.sha256(name)) return
    await volume.remove(path)
  }
  await volume.create(path, checked(release, name), release.size(name))
}

/** A file's bytes; breaks off at their end when they are not those of the manifest, so that the file is never named. */
export async function* checked(release: SlotRelease, name: string): AsyncGenerator<Uint8Array> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const part of release.open(name)) {
    hash.update(part)
    yield part
  }
  if (hash.digest('hex') !== release.sha256(name)) throw new SlotError(`file "${name}" of the image is damaged: take the image again`)
}

/** Replaces a file; a cut between leaves none, which nothing depends on. */
export async function replaceFile(volume: FatVolume, path: string, text: string): Promise<void> {
  const bytes = Buffer.from(text)
  if (await volume.has(path)) {
    if (Buffer.compare(await volume.read(path), bytes) === 0) return
    await volume.remove(path)
  }
  await volume.create(path, bytes)
}

/** A file of a boot partition. */
export interface BootFile {
  readonly path: string
  readonly size: number
}

/** Root file systems that no slot names which is kept. */
export async function superfluousRoots(volume: FatVolume, kept: readonly string[]): Promise<BootFile[]> {
  const names = new Set(kept.map((hash) => rootFile(hash)))
  return (await filesIn(volume, '/ichor')).filter(
    ({ path }) => /^\/ichor\/[0-9a-f]{16}\.sqsh$/i.test(path) && !names.has(path.toLowerCase()),
  )
}

/** The files of a folder, without what is below. */
export async function filesIn(volume: FatVolume, folder: string): Promise<BootFile[]> {
  return (await volume.list(folder)).filter(({ directory }) => !directory).map(({ name, size }) => ({ path: `${folder}/${name}`, size }))
}

/** Refuses what would not fit even with these files gone, before any of them is. */
export function requireRoom(volume: FatVolume, release: SlotRelease, names: readonly string[], superfluous: readonly BootFile[]): void {
  const needed = names.reduce((sum, name) => sum + release.size(name), 0)
  const room = superfluous.reduce((sum, { size }) => sum + size, volume.free)
  const megabytes = (bytes: number) => Math.ceil(bytes / (1 << 20))
  if (room < needed)
    throw new SlotError(
      `the boot partition is too small: the image takes ${megabytes(needed)} MiB, ${megabytes(room)} MiB are free; nothing was changed`,
    )
}

/** The kernel learns which slot it is from, where its parameters are not sealed. */
export function withSlot(commandLine: string, slot: Slot): string {
  return [...commandLine.split(/\s+/).filter((word) => word !== '' && !word.startsWith('ichor.slot=')), `ichor.slot=${slot}`].join(' ')
}
