/** A kernel image with a signed PCR policy, and a TPM that has measured its start, as firmware, stub and stage 0 do. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { makeUki } from '../../src/programs/factory/release/uki.ts'
import { peSections } from '../../src/wire/efi/pe.ts'
import { Tpm, type Transmit } from '../../src/wire/tpm2/tpm.ts'
import { program, stubOf } from '../rootfs/program.ts'

/** A key that signs policies. */
export const newPcrKey = (): KeyObject => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey

/** Sections of the stub of systemd 252, in the order in which it measures them. */
const measured = ['.linux', '.osrel', '.cmdline', '.initrd', '.pcrpkey']

/** A kernel image with this command line. */
export const imageOf = (pcrKey: KeyObject | undefined, commandLine = 'quiet'): Buffer =>
  makeUki({
    ...{ stub: stubOf(252), osRelease: 'ID=ichor\n', commandLine, pcrKey },
    initramfs: Buffer.from('an initramfs'),
    kernel: program().subarray(0, 0x400), // a TPM hashes 1024 bytes at most
  })

function section(image: Buffer, name: string): Buffer | undefined {
  const found = peSections(image).find((each) => each.name === name)
  return found && image.subarray(found.offset, found.offset + found.size)
}

/** What the stub unpacks of an image and stage 0 keeps for init, by path. */
export function policyFiles(image: Buffer): Record<string, string> {
  const [signatures, key] = [section(image, '.pcrsig'), section(image, '.pcrpkey')]
  if (!signatures || !key) return {}
  return {
    '/run/ichor/tpm2-pcr-signature.json': signatures.toString(),
    '/run/ichor/tpm2-pcr-public-key.pem': key.toString(),
  }
}

/** Measures the start of an image up to init, in a TPM that was just restarted. */
export async function measureImage(transmit: Transmit, image: Buffer, firmware = 'Secure Boot is on'): Promise<void> {
  const tpm = new Tpm(transmit)
  await tpm.measure(7, Buffer.from(firmware))
  for (const name of measured) {
    const content = section(image, name)
    if (content) for (const each of [Buffer.from(`${name}\0`), content]) await tpm.measure(11, each)
  }
  for (const phase of ['enter-initrd', 'leave-initrd']) await tpm.measure(11, Buffer.from(phase))
}
