/**
 * The signed PCR policy of a unified kernel image: which values PCR 11 has when the image was started unchanged and init runs. What
 * is sealed to the key that signs it is unsealed for every image of the same maker, and for no other.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { PeError, peSections } from '../../../wire/efi/pe.ts'
import { type BankHash, bankHashes } from '../../../wire/tpm2/constants.ts'
import { emptyPolicy, policyPcrDigest } from '../../../wire/tpm2/pcr.ts'
import { signedBanks, signPolicy } from '../../../wire/tpm2/pcr-signatures.ts'

/** A section and its content. */
export interface Section {
  readonly name: string
  readonly content: Uint8Array
}

/** Sections in the order in which the stub measures them, with the first version of systemd that does. */
const measured: readonly (readonly [string, number])[] = [
  ...([
    ['.linux', 252],
    ['.osrel', 252],
    ['.cmdline', 252],
    ['.initrd', 252],
    ['.ucode', 256],
    ['.splash', 252],
    ['.dtb', 252],
  ] as const),
  ...([
    ['.uname', 253],
    ['.sbat', 254],
    ['.pcrpkey', 252],
    ['.profile', 257],
    ['.dtbauto', 257],
    ['.hwids', 257],
  ] as const),
]

/** Phases that are measured before keys are unsealed: by stage 0 and by init. */
const phases = ['enter-initrd', 'leave-initrd', 'enter-machined']

const imagePcr = 11

/** Version of systemd that a stub is from, by the mark that systemd itself looks for: in a section of its own, for arm64 behind all sections. */
export function stubVersion(stub: Buffer): number {
  const [, version] = /#### LoaderInfo: systemd-stub (\d+)/.exec(stub.toString('latin1')) ?? []
  if (version === undefined) throw new PeError('the stub does not state its version, which decides what it measures')
  return Number(version)
}

/** PCR 11 after the sections and the phases, by the hash of a bank. */
export function imageMeasurement(bank: BankHash, version: number, sections: readonly Section[]): Buffer {
  let value = Buffer.alloc(bankHashes[bank])
  const extend = (content: Uint8Array | string) => {
    value = hash(bank, Buffer.concat([value, hash(bank, content, 'buffer')]), 'buffer')
  }
  for (const [name, since] of measured) {
    const section = version >= since && sections.find((each) => each.name === name)
    if (!section) continue
    extend(`${name}\0`)
    extend(section.content)
  }
  for (const phase of phases) extend(phase)
  return value
}

/** The content of `.pcrpkey`. */
export const policyKeySection = (key: KeyObject): Buffer => Buffer.from(createPublicKey(key).export({ type: 'spki', format: 'pem' }))

/** The content of `.pcrsig` for an image of a stub and these sections. */
export function policySignatures(key: KeyObject, stub: Buffer, added: readonly Section[]): Buffer {
  const version = stubVersion(stub)
  const own = peSections(stub).map(({ name, offset, size }) => ({ name, content: stub.subarray(offset, offset + size) }))
  const signatures = signedBanks.map((bank) => {
    const value = imageMeasurement(bank, version, [...own, ...added])
    return [bank, [signPolicy(key, bank, [imagePcr], policyPcrDigest(emptyPolicy, { bank, pcrs: [imagePcr] }, [value]))]]
  })
  return Buffer.from(JSON.stringify(Object.fromEntries(signatures)))
}
