import { Command } from 'commander'
import { array } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { runServe, type ServeOptions } from './serve.ts'

/** talosctl factory */
export function factory(io: Io): Command {
  const group = new Command().description('Serve boot media that are made to order.')
  group
    .command('serve')
    .description(
      'Answer the HTTP API of the image factory until interrupted. Example: talosctl factory serve --images dist --listen 127.0.0.1:8080',
    )
    .requiredOption('--images <folder>', 'folder that mkimage.sh has filled, or a folder of such')
    .option('--listen <address:port>', 'where to listen', '127.0.0.1:8080')
    .option('--cache <folder>', 'keep schematics and built images here; without it they are forgotten when the server ends')
    .option('--cache-size <size>', 'most that built images may take', '16GiB')
    .option('--key <file>', 'key that mkimage.sh signed the releases with; ISOs and installers with other arguments are signed with it')
    .option('--extensions <list>', 'system extensions that schematics may name: a folder of images, or a file with one image each line')
    .option('--vex <file>', 'statements on flaws of packages (OpenVEX), merged with those of the releases; may be repeated', array())
    .option('--secure-boot-key <file>', 'key that mkimage.sh signed the boot files with for Secure Boot; "sbsign" signs with it')
    .option('--secure-boot-cert <file>', 'its certificate in PEM')
    .option(
      '--sign-command <command>',
      'sign for Secure Boot with this program: it is run with two paths, of the file to sign and for the signed one',
    )
    .option('--pcr-key <file>', 'key that mkimage.sh signed the PCR policy with')
    .option('--external-url <url>', 'where clients reach this server, when a proxy stands before it')
    .option('--tls-cert <file>', 'certificate in PEM')
    .option('--tls-key <file>', 'its private key in PEM')
    .option('--token-file <file>', 'require the token in this file as "Authorization: Bearer TOKEN"')
    .action((options: ServeOptions) => runServe(io, options))
  return group
}
