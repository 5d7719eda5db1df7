/** The keys of the image factory, from its flags. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { KeyError, readKey } from '../../../factory/image-key.ts'
import { type Signers, signingCommand } from '../../../factory/remake/signers.ts'
import { UsageError } from '../../failure.ts'
import type { ServeOptions } from './serve.ts'

/** Reads and checks the keys. Throws UsageError. */
export function signersOf({ key, pcrKey, secureBootKey, secureBootCert, signCommand }: ServeOptions): Signers {
  if (!secureBootKey !== !secureBootCert) throw new UsageError('--secure-boot-key and --secure-boot-cert go together')
  if (secureBootKey !== undefined && signCommand !== undefined)
    throw new UsageError('--sign-command signs instead of --secure-boot-key: leave one of them out')
  return {
    key: key === undefined ? undefined : imageKey(key),
    pcrKey: pcrKey === undefined ? undefined : policyKey(pcrKey),
    ...(secureBootKey && secureBootCert && bootKey(secureBootKey, secureBootCert)),
    ...(signCommand !== undefined && commandOf(signCommand)),
  }
}

function imageKey(path: string): KeyObject {
  try {
    return readKey(path)
  } catch (error) {
    throw error instanceof KeyError ? new UsageError(`--key: ${error.message}`) : error
  }
}

function read<T>(flag: string, path: string, what: string, parse: (text: string) => T): T {
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch {
    throw new UsageError(`${flag} "${path}": no ${what} in PEM`)
  }
}

function policyKey(path: string): KeyObject {
  const key = read('--pcr-key', path, 'private key without a passphrase', createPrivateKey)
  if (key.asymmetricKeyType !== 'rsa' || key.asymmetricKeyDetails?.modulusLength !== 2048)
    throw new UsageError(`--pcr-key "${path}": must be an RSA key of 2048 bits, which every TPM takes`)
  return key
}

function bootKey(key: string, certificate: string): Pick<Signers, 'secureBoot' | 'certificate'> {
  const secret = read('--secure-boot-key', key, 'private key without a passphrase', createPrivateKey)
  if (secret.asymmetricKeyType !== 'rsa') throw new UsageError(`--secure-boot-key "${key}": firmwares take RSA keys only`)
  const shown = read('--secure-boot-cert', certificate, 'certificate', (text) => new X509Certificate(text))
  if (!shown.checkPrivateKey(secret)) throw new UsageError(`--secure-boot-cert "${certificate}" is not that of --secure-boot-key`)
  if (Bun.which('sbsign') === null) throw new UsageError('--secure-boot-key: "sbsign" is not installed here: install sbsigntool')
  const sign = signingCommand((plain, signed) => ['sbsign', '--key', key, '--cert', certificate, '--output', signed, plain])
  return { secureBoot: sign, certificate: shown.fingerprint256 }
}

function commandOf(command: string): Pick<Signers, 'secureBoot' | 'certificate'> {
  const words = command.trim().split(/\s+/)
  const [program = ''] = words
  if (Bun.which(program) === null) throw new UsageError(`--sign-command "${command}": there is no program "${program}"`)
  return { secureBoot: signingCommand((plain, signed) => [...words, plain, signed]), certificate: command }
}
