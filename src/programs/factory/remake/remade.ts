/** A release that was made again, before its products. */
import type { Verity } from '../root/verity.ts'

/** By what a slot names its release, in hex. */
export interface SlotNames {
  readonly rootHash: string
  /** First 16 digits of the hash of the manifest. */
  readonly image: string
  /** First 16 digits of the hash of the kernel image. */
  readonly kernel: string
}

/** A release that differs in its root, or in a command line that a signature covers. */
export interface Remade {
  readonly verity: Verity
  /** The root with its tree of hashes. */
  readonly rootPath: string
  readonly initramfs: Buffer
  readonly kernel: Buffer
  readonly uki: Buffer
  /** Small files of the release: `manifest`, `manifest.sig`, `cmdline`. */
  readonly documents: ReadonlyMap<string, Buffer>
  /** The command line of the release, and this one's. */
  readonly base: string
  readonly line: string
  readonly before: SlotNames
  readonly after: SlotNames
}
