/** The one thing trustd does: it signs server certificates for machines that know the token. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { signCSR } from '../../pki/request.ts'
import { type Context, type Method, unary } from '../../rpc/server/method.ts'
import { RpcError } from '../../rpc/status.ts'
import { DecodeError } from '../../wire/decode-error.ts'

/** The authority trustd signs for, and the token that lets machines ask. */
export interface Authority {
  /** PEM of its certificate and key. */
  readonly crt: string
  readonly key: string
  readonly token: string
}

const lifetime = 24 * 3_600_000
const maxRequest = 64 * 1024

/** The certificate for server use only, whatever the request asks for: another usage or a role would open other nodes. */
export function issue(csr: string, authority: Authority, now = new Date()): string {
  const withoutRoles = ({ commonName }: { commonName?: string }) => (commonName === undefined ? {} : { commonName })
  return signCSR(csr, { ca: authority, subject: withoutRoles, usage: ['serverAuth'], lifetime, now })
}

/** The method that machines call; the authority is asked for at each call, as it may change. */
export function certificateMethod(authority: () => Authority | undefined): Method {
  return unary('securityapi.SecurityService/Certificate', 'anyone', ({ csr }, { metadata, peer, log }) => {
    const signer = authority()
    if (!signer) throw new RpcError('Unavailable', 'the authority is not known yet: try again')
    admit(metadata, signer.token)
    if (csr.length > maxRequest) throw new RpcError('InvalidArgument', `certificate request is larger than ${maxRequest} bytes`)
    try {
      const crt = issue(Buffer.from(csr).toString('utf8'), signer)
      log.info('certificate issued', { peer })
      return { ca: Buffer.from(signer.crt), crt: Buffer.from(crt) }
    } catch (error) {
      if (error instanceof DecodeError) throw new RpcError('InvalidArgument', error.message, { cause: error })
      throw error
    }
  })
}

/** Compares digests, so that neither the time taken nor a length tells of the token. */
function admit(metadata: Context['metadata'], token: string): void {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const [given, ...more] = metadata.token ?? []
  if (token === '' || given === undefined || more.length > 0 || !timingSafeEqual(digest(given), digest(token)))
    throw new RpcError('Unauthenticated', 'invalid token')
}
