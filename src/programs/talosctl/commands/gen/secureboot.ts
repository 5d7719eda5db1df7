import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { parseCertificate, parseCertificates } from '../../../../pki/certificate.ts'
import { newMeasurementKey, newSigningPair, signVariable } from '../../../../pki/secure-boot.ts'
import { DecodeError } from '../../../../wire/decode-error.ts'
import { secureBootVariables } from '../../../../wire/efi/authenticated-variable.ts'
import { writeSignatureLists } from '../../../../wire/efi/signature-list.ts'
import { codeOf } from '../../../../wire/errno.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { type NewFile, refuseExisting, writeNew } from '../../new-files.ts'
import type { GenFlags } from './gen.ts'

interface DatabaseOptions {
  enrolledCertificate: string
  signingCertificate: string
  signingKey: string
  includeWellKnownUefiCerts?: boolean
}

/** talosctl gen secureboot */
export function secureboot(io: Io, flags: () => GenFlags): Command {
  const group = new Command('secureboot')
    .description('Generate keys that sign images, and their entries for the firmware.')
    .option('-o, --output <folder>', 'folder to write to', '_out')
  const inFolder = (path: string) => join(group.opts<{ output: string }>().output, path)
  const write = (files: readonly NewFile[]) =>
    writeNew(
      files.map((file) => ({ ...file, path: inFolder(file.path) })),
      flags().force,
    )
  const refuse = (...names: string[]) => refuseExisting(names.map(inFolder), flags().force)
  group
    .command('uki')
    .summary('Make the key that signs boot loader and kernel')
    .option('--common-name <name>', 'name in the certificate', 'Test UKI Signing Key')
    .action(async ({ commonName }: { commonName: string }) => {
      await refuse('uki-signing-key.pem', 'uki-signing-cert.pem', 'uki-signing-cert.der')
      const { crt, key } = await newSigningPair(commonName, io.now())
      await write([
        { path: 'uki-signing-key.pem', content: key },
        { path: 'uki-signing-cert.pem', content: crt, mode: 0o644 },
        { path: 'uki-signing-cert.der', content: parseCertificate(crt).raw, mode: 0o644 },
      ])
    })
  group
    .command('pcr')
    .summary('Make the key that signs measurements of the start')
    .action(async () => {
      await refuse('pcr-signing-key.pem')
      await write([{ path: 'pcr-signing-key.pem', content: await newMeasurementKey() }])
    })
  group
    .command('database')
    .summary('Make the variables that enroll a certificate in the firmware: PK, KEK and db')
    .option(
      '--enrolled-certificate <file>',
      'what the firmware is to trust; several in one file are all trusted',
      '_out/uki-signing-cert.pem',
    )
    .option('--signing-certificate <file>', 'who may change that later', '_out/uki-signing-cert.pem')
    .option('--signing-key <file>', 'its key', '_out/uki-signing-key.pem')
    .option('--include-well-known-uefi-certs', "also trust Microsoft's (they are not in this program: add them to the enrolled file)")
    .action(async (options: DatabaseOptions) => write(await database(options, io.now())))
  return group
}

/** The variables as files that a boot loader enrolls, in the order in which they have to be written: db first, PK last. */
async function database(options: DatabaseOptions, at: Date): Promise<NewFile[]> {
  if (options.includeWellKnownUefiCerts)
    throw new UsageError(
      "--include-well-known-uefi-certs: Microsoft's certificates are not part of this program: append them as PEM to the file of --enrolled-certificate",
    )
  const enrolled = await read(options.enrolledCertificate)
  const signer = { crt: await read(options.signingCertificate), key: await read(options.signingKey) }
  try {
    const owner = randomUUID()
    const trusted = writeSignatureLists(
      parseCertificates(enrolled).map(({ raw }) => raw),
      owner,
    )
    const owned = writeSignatureLists([parseCertificate(signer.crt).raw], owner)
    return Object.keys(secureBootVariables)
      .reverse()
      .map((name) => {
        const variable = name as keyof typeof secureBootVariables
        const content = signVariable(variable, variable === 'db' ? trusted : owned, signer, at)
        return { path: `${variable}.auth`, content, mode: 0o644 }
      })
  } catch (error) {
    if (error instanceof DecodeError) throw new UsageError(`${options.signingKey}, ${options.signingCertificate}: ${error.message}`)
    throw error
  }
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`read "${path}": ${codeOf(error)}: make it with "talosctl gen secureboot uki", or name another file`)
  }
}
