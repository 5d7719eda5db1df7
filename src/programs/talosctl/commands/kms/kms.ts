import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import { keyLength } from '../../../kms/methods.ts'
import type { Io } from '../../io.ts'
import { writeNew } from '../../new-files.ts'
import { runServe, type ServeOptions } from './serve.ts'

/** talosctl kms */
export function kms(io: Io): Command {
  const group = new Command().description('Serve the keys of encrypted volumes of kind "kms".')
  group
    .command('new-key')
    .description('Make a key file. Without it the volumes that it sealed keys for stay locked: keep a copy.')
    .argument('<file>', 'where to write it')
    .action((path: string) => writeNew([{ path, content: new Uint8Array(randomBytes(keyLength)) }]))
  group
    .command('serve')
    .description(
      'Seal and unseal keys for machines until interrupted. Example: talosctl kms serve --key-file kms.key --tls-cert crt --tls-key key',
    )
    .requiredOption('--key-file <file>', 'key that seals, 32 bytes that only its owner can read')
    .option('--listen <address:port>', 'where to listen', '[::]:4050')
    .option('--tls-cert <file>', 'certificate in PEM')
    .option('--tls-key <file>', 'its private key in PEM')
    .option('--machines <file>', 'serve only machines whose UUIDs are in this file, one a line; it is read again when it changes')
    .option('--plaintext', 'serve without TLS: the keys of the volumes cross the network in clear')
    .action((options: ServeOptions) => runServe(io, options))
  return group
}
