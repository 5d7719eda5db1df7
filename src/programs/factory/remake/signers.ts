/** What images are signed with. */
import type { KeyObject } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { peSigned } from '../../../wire/efi/pe.ts'
import { codeOf } from '../../../wire/errno.ts'
import { FactoryError } from '../factory-error.ts'

/** The keys of the operator, of which a release may need some. */
export interface Signers {
  /** The key that the releases are signed with. */
  readonly key?: KeyObject | undefined
  /** Signs the PCR policy of a kernel image. */
  readonly pcrKey?: KeyObject | undefined
  /** Signs a program of the firmware for Secure Boot. */
  readonly secureBoot?: ((program: Buffer) => Promise<Buffer>) | undefined
  /** What that signs with, in words: an image of another one is another image. */
  readonly certificate?: string | undefined
}

const commandLimit = 120_000

/** Signs with a program, whose arguments follow from the paths of the unsigned program and of the signed one. Throws FactoryError. */
export const signingCommand =
  (argv: (plain: string, signed: string) => readonly string[]) =>
  async (program: Buffer): Promise<Buffer> => {
    const folder = mkdtempSync(join(tmpdir(), 'ichor-sign-'))
    const [plain, signed] = [join(folder, 'plain.efi'), join(folder, 'signed.efi')]
    const command = [...argv(plain, signed)]
    try {
      writeFileSync(plain, program, { mode: 0o600 })
      await using child = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'inherit', timeout: commandLimit })
      const code = await child.exited
      if (code !== 0)
        throw new FactoryError(500, `signing for Secure Boot: "${command[0]}" ended with ${code}, its output is in the log of the factory`)
      const bytes = readFileSync(signed)
      if (!peSigned(bytes)) throw new FactoryError(500, `signing for Secure Boot: "${command[0]}" has left a program without a signature`)
      return bytes
    } catch (error) {
      if (error instanceof FactoryError) throw error
      throw new FactoryError(500, `signing for Secure Boot with "${command[0]}": ${codeOf(error)}`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
