/** An ISO of a release with another command line: of its menu for BIOS, of its kernel image, and of the release that it installs. */
import type { Segment } from '../../../oci/image.ts'
import { grubWords } from '../../../oci/kernel-command-line.ts'
import { patchSegments } from '../../../oci/segments.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { type IsoPlace, readIsoFiles, replaceIsoFile } from '../../../wire/iso9660/files.ts'
import { FactoryError } from '../factory-error.ts'
import { fileNameOf, installFolderOf, type Release } from '../releases.ts'
import type { Derived, Patch } from './derived.ts'
import { withFile } from './read-file.ts'

/** The ISO of a release. */
export const isoFile = 'ichor-amd64.iso'
/** What GRUB shows. */
export const menuFile = 'boot/grub/grub.cfg'

/** The bytes of the ISO; `base` is the command line of the release. Throws FactoryError. */
export function isoSegments(release: Release, derived: Derived, { base, line }: { base: string; line: string }): Promise<Segment[]> {
  const installFolder = installFolderOf(release)
  return withFile(release, isoFile, async ({ path, size, read }) => {
    const files = await readIsoFiles(read, size).catch((error: unknown) => {
      if (error instanceof DecodeError) throw new FactoryError(500, `"${isoFile}" of the release: ${messageOf(error)}`)
      throw error
    })
    const placeOf = (name: string): IsoPlace => {
      const found = files.get(name)
      if (!found) throw new FactoryError(500, `"${isoFile}" of the release has no "${name}": make it again with mkimage.sh`)
      return found
    }
    const text = async ({ offset, size: length }: IsoPlace) => Buffer.from(await read(offset, Math.min(length, 64 << 10))).toString()
    const patches: Patch[] = []
    const replace = (name: string, content: Buffer) => {
      const place = placeOf(name)
      if (content.length > place.room)
        throw new FactoryError(
          400,
          `"${name}" has room for ${place.room} bytes in "${isoFile}", not ${content.length}: make it again with mkimage.sh`,
        )
      patches.push(...replaceIsoFile(place, content))
    }
    const sameBuild = (await text(placeOf(`${installFolder}/manifest`))) === derived.before
    if (!sameBuild) throw new FactoryError(500, `"${fileNameOf(release, isoFile)}" and its manifest are of different builds`)
    // Only media that start from a BIOS, too, have a menu of GRUB.
    if (release.arch === 'amd64')
      replace(menuFile, Buffer.from(changedMenu(await text(placeOf(menuFile)), `  linux /${installFolder}/vmlinuz`, { base, line })))
    for (const [name, content] of derived.files) replace(`${installFolder}/${name}`, content)
    const uki = placeOf(`${installFolder}/vmlinuz.efi`)
    patches.push(...derived.uki.map(({ offset, bytes }) => ({ offset: uki.offset + offset, bytes })))
    return patchSegments([{ file: path, offset: 0, length: size }], patches)
  })
}

/** The menu with another command line in each of its entries. */
export function changedMenu(menu: string, kernel: string, { base, line }: { base: string; line: string }): string {
  const start = `${kernel} ${grubWords(base)}`
  const lines = menu.split('\n')
  if (!lines.some((each) => each.startsWith(start)))
    throw new FactoryError(500, `"${menuFile}" of the ISO does not start the release's command line`)
  const changed = lines.map((each) => (each.startsWith(start) ? `${kernel} ${grubWords(line)}${each.slice(start.length)}` : each))
  return changed.join('\n')
}
