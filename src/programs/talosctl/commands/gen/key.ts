import { isIp } from '../../../../document/fields.ts'
import { newCA } from '../../../../pki/certificate.ts'
import { newKey } from '../../../../pki/key.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { writeNew } from '../../new-files.ts'
import type { GenFlags } from './gen.ts'

/** Makes a private key. */
export async function genKey(_io: Io, flags: GenFlags, { name }: { name: string }): Promise<void> {
  await writeNew([{ path: `${name}.key`, content: newKey('ed25519').pem }], flags.force)
}

/** Makes a key and a certificate that it signs itself. */
export async function genKeypair(io: Io, flags: GenFlags, { organization, ip }: { organization: string; ip?: string }): Promise<void> {
  if (ip !== undefined && !isIp(ip)) throw new UsageError(`"${ip}" is not an IP address`)
  const pair = newCA({ subject: { organizations: [organization] }, kind: 'ed25519', now: io.now(), ...(ip && { sans: { ips: [ip] } }) })
  const files = [
    { path: `${organization}.crt`, content: pair.crt, mode: 0o644 },
    { path: `${organization}.key`, content: pair.key },
  ]
  await writeNew(files, flags.force)
}
