/** A PKCS #11 token in software (Debian's `softhsm2`), with a key for Secure Boot. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../../rootfs/build/run.ts'

const library = '/usr/lib/softhsm/libsofthsm2.so'
const [label, object, pin] = ['factory', 'secure-boot', '87654321']

/** A token, and how it signs. */
export interface Token {
  /** A program that takes the paths of `--sign-command`. */
  readonly command: string
  /** What programs need to find the token. */
  readonly environment: Record<string, string>
  readonly pinFile: string
  /** Has the token write its public key to a file, in PEM; returns the path. */
  publicKey(): Promise<string>
}

/** Makes a token with a key of a file, which programs can use and not read. */
export async function makeToken(folder: string, key: string, certificate: string): Promise<Token> {
  const path = (name: string) => join(folder, name)
  mkdirSync(path('tokens'), { mode: 0o700 })
  writeFileSync(path('softhsm2.conf'), `directories.tokendir = ${path('tokens')}\nobjectstore.backend = file\nlog.level = ERROR\n`)
  writeFileSync(path('pin'), pin, { mode: 0o600 })
  const environment = { SOFTHSM2_CONF: path('softhsm2.conf'), PKCS11_MODULE_PATH: library }
  const use = (...argv: string[]) => run(argv, { env: { ...process.env, ...environment } })
  await use('softhsm2-util', '--init-token', '--free', '--label', label, '--so-pin', '12345678', '--pin', pin)
  await run(['openssl', 'pkcs8', '-topk8', '-nocrypt', '-in', key, '-outform', 'DER', '-out', path('private.der')])
  await run(['openssl', 'pkey', '-in', key, '-pubout', '-outform', 'DER', '-out', path('public.der')])
  const tool = (...argv: string[]) => use('pkcs11-tool', '--module', library, '--token-label', label, ...argv)
  const write = (file: string, type: string, ...flags: string[]) =>
    tool('--login', '--pin', pin, '--write-object', file, '--type', type, '--id', '01', '--label', object, ...flags)
  await write(path('private.der'), 'privkey', '--usage-sign')
  await write(path('public.der'), 'pubkey')
  // As docs/images.md shows it.
  const uri = `pkcs11:token=${label};object=${object};type=private?pin-source=file:${path('pin')}`
  const command = path('sign')
  writeFileSync(command, `#!/bin/sh\nexec sbsign --engine pkcs11 --key '${uri}' --cert '${certificate}' --output "$2" "$1"\n`)
  chmodSync(command, 0o700)
  return {
    ...{ command, environment, pinFile: path('pin') },
    async publicKey() {
      await tool('--read-object', '--type', 'pubkey', '--id', '01', '--output-file', path('shown.der'))
      await run(['openssl', 'pkey', '-pubin', '-inform', 'DER', '-in', path('shown.der'), '-out', path('shown.pem')])
      return path('shown.pem')
    },
  }
}
