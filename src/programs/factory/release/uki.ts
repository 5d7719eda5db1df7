/** A kernel, its command line and its initramfs as one program of the firmware (uapi-group.org "Unified Kernel Image"). */
import type { KeyObject } from 'node:crypto'
import { addSections, peImageSize } from '../../../wire/efi/pe.ts'
import { policyKeySection, policySignatures } from './pcr-policy.ts'

/** What a unified kernel image is made of. */
export interface UkiParts {
  stub: Buffer
  osRelease: string
  commandLine: string
  initramfs: Buffer
  kernel: Buffer
  /** Signs the PCR policy of the image. */
  pcrKey?: KeyObject | undefined
}

/** Puts the image together. */
export function makeUki({ stub, osRelease, commandLine, initramfs, kernel, pcrKey }: UkiParts): Buffer {
  const sections = [
    { name: '.osrel', content: Buffer.from(osRelease) },
    { name: '.cmdline', content: Buffer.from(commandLine) },
    ...(pcrKey ? [{ name: '.pcrpkey', content: policyKeySection(pcrKey) }] : []),
    { name: '.initrd', content: initramfs },
    // Last, with the memory it unpacks itself into behind it.
    { name: '.linux', content: kernel, room: peImageSize(kernel) },
  ]
  return addSections(stub, [...(pcrKey ? [{ name: '.pcrsig', content: policySignatures(pcrKey, stub, sections) }] : []), ...sections])
}
