import { isIp } from '../../../../document/fields.ts'
import { parseKey } from '../../../../pki/key.ts'
import { newCSR } from '../../../../pki/request.ts'
import { allRoles, isRole } from '../../../../wire/x509/roles.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { writeNew } from '../../new-files.ts'
import { readText } from '../../read-text.ts'
import type { GenFlags } from './gen.ts'

/** The request, and its key. */
export interface CsrOptions {
  key: string
  ip: string
  roles?: string[]
}

/** Makes a request, in a file beside the key. */
export async function genCsr(_io: Io, flags: GenFlags, { key: path, ip, roles }: CsrOptions): Promise<void> {
  if (!isIp(ip)) throw new UsageError(`"${ip}" is not an IP address`)
  const organizations = roles?.length ? roles : ['os:admin']
  const unknown = organizations.find((role) => !isRole(role))
  if (unknown) throw new UsageError(`"${unknown}" is not a role: there are ${allRoles.join(', ')}`)
  const key = parseKey(await readText(path, 'key'))
  const { csr } = newCSR({ subject: { organizations }, sans: { ips: [ip] }, key })
  await writeNew([{ path: `${path.replace(/\.key$/, '')}.csr`, content: csr, mode: 0o644 }], flags.force)
}
