/** A kernel image with a signed PCR policy, and a TPM that has measured its start, as firmware, stub and stage 0 do. */
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { makeUki } from '../../src/programs/factory/release/uki.ts'
import { peSections } from '../../src/wire/efi/pe.ts'
import { algorithms, bankHashes } from '../../src/wire/tpm2/constants.ts'
import { eventTypes } from '../../src/wire/tpm2/event-types.ts'
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

/** What firmware and stub measure when they start an image, with what they write into the log beside the digest. */
function measurementsOf(image: Buffer, firmware: string) {
  const sections = measured.flatMap((name) => {
    const content = section(image, name)
    const data = Buffer.from(`${name}\0`, 'utf16le')
    return content ? [Buffer.from(`${name}\0`), content].map((bytes) => ({ pcr: 11, type: eventTypes.EV_IPL, bytes, data })) : []
  })
  const action = Buffer.from(firmware)
  return [{ pcr: 7, type: eventTypes.EV_EFI_ACTION, bytes: action, data: action }, ...sections]
}

/** Measures the start of an image up to init, in a TPM that was just restarted. */
export async function measureImage(transmit: Transmit, image: Buffer, firmware = 'Secure Boot is on'): Promise<void> {
  const tpm = new Tpm(transmit)
  for (const { pcr, bytes } of measurementsOf(image, firmware)) await tpm.measure(pcr, bytes)
  for (const phase of ['enter-initrd', 'leave-initrd']) await tpm.measure(11, Buffer.from(phase))
}

/** The log that the firmware leaves of the start of an image, for the bank of SHA-256 alone. */
export function eventLog(image: Buffer, firmware = 'Secure Boot is on'): Buffer {
  const words = (...numbers: readonly number[]) => Buffer.from(new Uint32Array(numbers).buffer)
  const bank = Buffer.from(new Uint16Array([algorithms.sha256, bankHashes.sha256]).buffer)
  const specification = Buffer.concat([Buffer.from('Spec ID Event03\0'), Buffer.alloc(8), words(1), bank, Buffer.alloc(1)])
  const first = Buffer.concat([words(0, eventTypes.EV_NO_ACTION), Buffer.alloc(20), words(specification.length), specification])
  const events = measurementsOf(image, firmware).flatMap(({ pcr, type, bytes, data }) => [
    words(pcr, type, 1),
    bank.subarray(0, 2),
    createHash('sha256').update(bytes).digest(),
    words(data.length),
    data,
  ])
  return Buffer.concat([first, ...events])
}
