/** What images are built with, and the releases that are made again for a schematic. */
import { createPublicKey } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { SerialQueue } from '../../timing/serial-queue.ts'
import type { Builds } from './build/builds.ts'
import { diskFile } from './build/disk.ts'
import { installerFile } from './build/installer.ts'
import { isoFile } from './build/iso.ts'
import { stampOf } from './build/read-file.ts'
import { chosenExtensions, type OfferedExtension } from './extensions.ts'
import { pathOf, type Release } from './releases.ts'
import { checkSigners, remakeRelease, signaturesOf } from './remake/remake.ts'
import type { Signers } from './remake/signers.ts'
import type { Extension } from './root/extend.ts'
import type { Schematic } from './schematic.ts'

/** What images are built with. */
export interface Workshop {
  readonly builds: Builds
  readonly signers: Signers
  /** What the operator offers. */
  readonly extensions?: readonly OfferedExtension[] | undefined
  /** Where clients reach the factory, for the entry of the schematic on a machine. */
  readonly url?: string | undefined
}

/** A release is large, and in memory while it is made: one at a time. */
const remakes = new SerialQueue()

/**
 * The release that files are made of: its own, or one with the extensions of the schematic, and with a command line in the kernel image
 * where that is signed. Throws FactoryError.
 */
export async function remadeRelease(
  workshop: Workshop,
  release: Release,
  schematic: Schematic,
  { base, line }: { base: string; line: string },
): Promise<Release> {
  const { builds, signers, extensions: offered = [] } = workshop
  const chosen = chosenExtensions(offered, release, schematic)
  if (chosen.length === 0 && line === base) return release
  const signed = await signaturesOf(release)
  const covered = signed.secureBoot || signed.policy
  if (chosen.length === 0 && !covered) return release
  checkSigners(signed, signers)
  const order = { base, line: covered ? line : base, signers }
  const stamps = await Promise.all([installerFile, isoFile, diskFile, 'ichor-amd64.manifest'].map((each) => stampOf(pathOf(release, each))))
  const keys = [signers.key, signers.pcrKey].map((key) =>
    key ? createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString() : '',
  )
  const digests = chosen.map(({ digest }) => digest)
  const entry = chosen.length > 0 ? `${schematic.id} ${workshop.url ?? ''}` : ''
  const inputs = ['release', ...digests, entry, order.line, ...keys, signers.certificate ?? '', ...stamps]
  const folder = await builds.take(inputs, (path, signal) =>
    remakes.run(async () => {
      const files = `${path}.extensions`
      try {
        const extensions: Extension[] = []
        for (const [index, each] of chosen.entries())
          extensions.push({ metadata: each.metadata, files: await each.unpack(join(files, `${index}`), release.arch) })
        if (chosen.length > 0) extensions.push(schematicEntry(schematic, workshop.url))
        await remakeRelease(release, path, { ...order, extensions }, signal)
      } finally {
        rmSync(files, { recursive: true, force: true })
      }
    }),
  )
  return { ...release, folder }
}

/** By this a machine and its clients know which schematic its image is of. */
function schematicEntry({ id, yaml }: Schematic, url: string | undefined): Extension {
  const author = url === undefined ? 'Image Factory' : `Image Factory (${url})`
  const description = 'Virtual extension with the schematic of the image'
  const metadata = { name: 'schematic', version: id, author, description, compatibility: { talos: { version: '' } }, extraInfo: yaml }
  return { metadata, files: [{ path: `/usr/local/share/schematic/${id}`, type: 'file', mode: 0o644, bytes: new Uint8Array(0) }] }
}
