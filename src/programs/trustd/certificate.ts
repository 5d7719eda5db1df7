/** Signs server certificates for machines that know the token. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { parseCSR, signCSR } from '../../pki/request.ts'
import { type Context, type Method, unary } from '../../rpc/server/method.ts'
import { RpcError } from '../../rpc/status.ts'
import { DecodeError } from '../../wire/decode-error.ts'
import { splitHostPort } from '../../wire/host-port.ts'
import type { Name } from '../../wire/x509/name.ts'
import { type MemberRecord, namesOfOthers, type SharedNames, type Taken, type WantedNames } from './claims.ts'

/** The authority trustd signs for, and the token that lets machines ask. */
export interface Authority {
  /** PEM of its certificate and key. */
  readonly crt: string
  readonly key: string
  readonly token: string
}

const lifetime = 24 * 3_600_000

/** A signed certificate, and the names that it does not have because they are another machine's. */
export interface Issued {
  readonly crt: string
  readonly leftOut: readonly string[]
}

/**
 * The certificate is for server use only, whatever the request contains: another usage or a role would give access to other nodes.
 * Throws RpcError for a name of another machine when there is no other in it.
 */
export function issue(
  csr: string,
  authority: Authority,
  others: (wanted: WantedNames) => Taken = () => new Map(),
  now = new Date(),
): Issued {
  const { subject, extensions } = parseCSR(csr)
  const { dns = [], ips = [] } = extensions.altNames ?? {}
  const taken = others({ commonName: subject.commonName, dns, ips })
  const sans = { dns: dns.filter((name) => !taken.has(name)), ips: ips.filter((ip) => !taken.has(ip)) }
  const leftOut = [...taken.keys()]
  // A list of names that all nodes share may hold those of others; one that holds none of its own is not such a list.
  const anyOwn = sans.dns.some((name) => name !== 'localhost') || sans.ips.some((ip) => !/^127\.|^::1$/.test(ip))
  if (leftOut.length > 0 && (!anyOwn || taken.get(subject.commonName ?? '') === 'member'))
    throw new RpcError('PermissionDenied', `the request is for names of other members of the cluster: ${leftOut.slice(0, 10).join(', ')}`)
  const withoutRoles = ({ commonName }: Name): Name => (commonName === undefined ? {} : { commonName })
  return { crt: signCSR(csr, { ca: authority, subject: withoutRoles, sans, usage: ['serverAuth'], lifetime, now }), leftOut }
}

/** The method that machines call; the authority and the members are read at each call, as they may change. */
export function certificateMethod(
  authority: () => (Authority & { readonly shared: SharedNames }) | undefined,
  members: () => readonly MemberRecord[] | undefined,
): Method {
  const signing = () => {
    const signer = authority()
    if (!signer) throw new RpcError('Unavailable', 'the authority is not known yet: try again')
    return signer
  }
  const method = unary('securityapi.SecurityService/Certificate', 'anyone', ({ csr }, { metadata, peer, log }) => {
    const signer = signing()
    // It may be another than the one that was there when the call began.
    admit(metadata, signer.token)
    const known = members()
    if (!known) throw new RpcError('Unavailable', 'the members of the cluster are not known yet: try again')
    try {
      const others = (wanted: WantedNames) => namesOfOthers(wanted, splitHostPort(peer, 0).host, known, signer.shared)
      const { crt, leftOut } = issue(Buffer.from(csr).toString('utf8'), signer, others)
      log.info('certificate issued', { peer })
      if (leftOut.length > 0) log.warn('names of other members left out of a certificate', { peer, names: leftOut.join(', ') })
      return { ca: Buffer.from(signer.crt), crt: Buffer.from(crt) }
    } catch (error) {
      if (error instanceof DecodeError) throw new RpcError('InvalidArgument', error.message, { cause: error })
      throw error
    }
  })
  return { ...method, admit: (metadata) => admit(metadata, signing().token) }
}

/** Refuses callers without the token. Compares digests, so that neither the time nor a length leaks information about the token. */
export function admit(metadata: Context['metadata'], token: string): void {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const [given, ...more] = metadata.token ?? []
  if (token === '' || given === undefined || more.length > 0 || !timingSafeEqual(digest(given), digest(token)))
    throw new RpcError('Unauthenticated', 'invalid token')
}
