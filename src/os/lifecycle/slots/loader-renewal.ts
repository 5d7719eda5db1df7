/**
 * Renews systemd-boot itself. The boot loader of a release lies beside the one in use and is started once, together with the release.
 * Until a machine that it started has been found well, the firmware has the old one as its only choice for every other start, so a
 * new one that does not come up costs a power cycle and nothing else. The change itself is the write of one sector.
 */
import type { FatVolume } from '../../../wire/fat/volume.ts'
import type { SingleStart } from './firmware.ts'
import { checked, digestOf, filesIn, type LoaderRenewal, type Renewal, type SlotRelease } from './slot.ts'

/** Where firmware of a processor looks for a boot loader by default (UEFI Specification 2.10, section 3.5.1.1), and the one on trial. */
export function loaderFilesOf(arch: string): { loader: string; trial: string } {
  const name = arch === 'arm64' ? 'AA64' : 'X64'
  return { loader: `/EFI/BOOT/BOOT${name}.EFI`, trial: `/EFI/BOOT/TRIAL${name}.EFI` }
}

/** The boot loader of this machine, and the one on trial. */
export const { loader: loaderFile, trial: newLoaderFile } = loaderFilesOf(process.arch)
/** Its name in a release. */
export const loaderOfRelease = 'systemd-boot.efi'

/** A path of the EFI partition as firmware writes it. */
export const firmwarePath = (path: string): string => path.replaceAll('/', '\\')

/** Whether the boot loader of a release is another than the one in use. */
export async function bringsLoader(volume: FatVolume, release: SlotRelease): Promise<boolean> {
  return !(await volume.has(loaderFile)) || (await digestOf(volume, loaderFile)) !== release.sha256(loaderOfRelease)
}

/** Puts the boot loader of a release beside the one in use, if it is another. */
export async function stageLoader(volume: FatVolume, release: SlotRelease): Promise<void> {
  if (!(await bringsLoader(volume, release))) return volume.remove(newLoaderFile)
  await volume.mkdirAll('/EFI/BOOT')
  await volume.replace(newLoaderFile, checked(release, loaderOfRelease), release.size(loaderOfRelease))
}

/** The renewal on an EFI partition. */
export const loaderRenewal = (volume: FatVolume, firmware: SingleStart): LoaderRenewal => ({
  async try() {
    if (await volume.has(newLoaderFile)) firmware.request(firmwarePath(newLoaderFile))
  },

  async settle() {
    const renewal = await settled(volume, firmware)
    if (renewal === 'waiting') return renewal
    await volume.remove(newLoaderFile)
    firmware.forget()
    return renewal
  },
})

async function settled(volume: FatVolume, firmware: SingleStart): Promise<Renewal | undefined> {
  const file = (await filesIn(volume, '/EFI/BOOT')).find(({ path }) => path.toLowerCase() === newLoaderFile.toLowerCase())
  if (!file) return undefined
  // A power cut may have come between the change and the removal of the file.
  if ((await digestOf(volume, newLoaderFile)) === (await digestOf(volume, loaderFile))) return 'renewed'
  const started = firmware.startedFrom?.toLowerCase().endsWith(firmwarePath(newLoaderFile).toLowerCase()) ?? false
  if (!started) return firmware.requested ? 'waiting' : 'failed'
  await volume.replace(loaderFile, volume.stream(newLoaderFile), file.size)
  return 'renewed'
}
