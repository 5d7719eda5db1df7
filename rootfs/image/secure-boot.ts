/** Signatures for Secure Boot, by sbsigntool: of programs of the firmware, and of the variables that make it trust their key. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashOf } from '../build/cache.ts'
import { run } from '../build/run.ts'
import { uuidOf } from './uuid.ts'

/** RSA key and certificate, both PEM files. */
export interface SecureBootKeys {
  key: string
  certificate: string
}

/** The files hold no key and certificate that firmwares take. */
export class SecureBootKeyError extends Error {
  override name = 'SecureBootKeyError'
}

/** Looks at key and certificate before anything is made with them. Throws SecureBootKeyError. */
export function checkKeys({ key, certificate }: SecureBootKeys): void {
  const read = <T>(path: string, what: string, parse: (text: string) => T): T => {
    try {
      return parse(readFileSync(path, 'utf8'))
    } catch {
      throw new SecureBootKeyError(`"${path}": no ${what} in PEM (docs/images.md describes how to generate one)`)
    }
  }
  const secret = read(key, 'private key without a passphrase', createPrivateKey)
  if (secret.asymmetricKeyType !== 'rsa') throw new SecureBootKeyError(`"${key}": firmwares take RSA keys only`)
  if (!read(certificate, 'certificate', (text) => new X509Certificate(text)).checkPrivateKey(secret))
    throw new SecureBootKeyError(`certificate "${certificate}" is not that of key "${key}"`)
}

/** Reads the key of PCR policies. Throws SecureBootKeyError for one that TPMs do not take. */
export function readPcrKey(path: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(readFileSync(path, 'utf8'))
  } catch {
    throw new SecureBootKeyError(
      `--pcr-key "${path}": no private key without a passphrase in PEM ("talosctl gen secureboot pcr" makes one)`,
    )
  }
  const bits = key.asymmetricKeyDetails?.modulusLength
  if (key.asymmetricKeyType !== 'rsa' || bits !== 2048)
    throw new SecureBootKeyError(`--pcr-key "${path}": must be an RSA key of 2048 bits, which every TPM takes`)
  return key
}

/** Signs a program of the firmware. */
export async function signProgram(program: Buffer, { key, certificate }: SecureBootKeys, work: string): Promise<Buffer> {
  mkdirSync(work, { recursive: true })
  const [plain, signed] = [join(work, 'plain.efi'), join(work, 'signed.efi')]
  try {
    writeFileSync(plain, program)
    await run(['sbsign', '--key', key, '--cert', certificate, '--output', signed, plain])
    return readFileSync(signed)
  } finally {
    for (const path of [plain, signed]) rmSync(path, { force: true })
  }
}

/** The variables of Secure Boot in the order in which they must be set, and the file systemd-boot expects for each. */
const variables = ['db', 'KEK', 'PK'] as const

/** `db.auth`, `KEK.auth` and `PK.auth`, each with this one certificate: who owns it, owns the machine. */
export async function enrollment({ key, certificate }: SecureBootKeys, work: string): Promise<{ name: string; content: Buffer }[]> {
  mkdirSync(work, { recursive: true })
  const der = new X509Certificate(readFileSync(certificate)).raw
  const [plain, list] = [join(work, 'certificate.der'), join(work, 'list.esl')]
  const owner = uuidOf(hashOf(der))
  const attributes = 'NON_VOLATILE,BOOTSERVICE_ACCESS,RUNTIME_ACCESS,TIME_BASED_AUTHENTICATED_WRITE_ACCESS'
  try {
    writeFileSync(plain, der)
    await run(['sbsiglist', '--owner', owner, '--type', 'x509', '--output', list, plain])
    const signed: { name: string; content: Buffer }[] = []
    for (const name of variables) {
      const output = join(work, `${name}.auth`)
      await run(['sbvarsign', '--key', key, '--cert', certificate, '--attr', attributes, '--output', output, name, list])
      signed.push({ name: `${name}.auth`, content: readFileSync(output) })
      rmSync(output)
    }
    return signed
  } finally {
    for (const path of [plain, list]) rmSync(path, { force: true })
  }
}
