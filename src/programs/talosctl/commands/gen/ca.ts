import { createHash } from 'node:crypto'
import { newCA, parseCertificate } from '../../../../pki/certificate.ts'
import { newKey, newRsaKey } from '../../../../pki/key.ts'
import type { Io } from '../../io.ts'
import { refuseExisting, writeNew } from '../../new-files.ts'
import type { GenFlags } from './gen.ts'

/** What the authority is like. */
export interface CaOptions {
  organization: string
  hours: number
  rsa?: boolean
}

/** Makes an authority: certificate, key, and the hash of its public key. */
export async function genCa(io: Io, flags: GenFlags, { organization, hours, rsa }: CaOptions): Promise<void> {
  await refuseExisting(
    ['crt', 'sha256', 'key'].map((suffix) => `${organization}.${suffix}`),
    flags.force,
  )
  const key = rsa ? await newRsaKey() : newKey('ed25519')
  const { crt } = newCA({ subject: { organizations: [organization] }, key, lifetime: hours * 3600_000, now: io.now() })
  const hash = createHash('sha256').update(parseCertificate(crt).publicKey).digest('hex')
  const files = [
    { path: `${organization}.crt`, content: crt, mode: 0o644 },
    { path: `${organization}.sha256`, content: `sha256:${hash}`, mode: 0o644 },
    { path: `${organization}.key`, content: key.pem },
  ]
  await writeNew(files, flags.force)
}
