/**
 * Keys that a server on the network seals, in the protocol and the tokens of the field: a KMS, for this machine, or the control
 * planes of the cluster, for the volume, wherever its disk is.
 */
import { connect } from '../../../rpc/client/channel.ts'
import { RpcError } from '../../../rpc/status.ts'
import { parseKmsEndpoint, siblingEndpoint } from '../../../wire/luks2/kms-endpoint.ts'
import type { Outbound } from '../../outbound.ts'
import { distinctiveUUID, KeyError } from './passphrase.ts'
import type { KeyUse, SealedKind } from './sealed-kind.ts'

/** Milliseconds for one call, connecting included. */
const callLimit = 10_000
/** The same for a control plane: there may be others. */
const siblingLimit = 5_000
/** Most control planes that are called. */
const mostSiblings = 8
const keyLength = 32
/** Most bytes of a sealed key: the header has 12 KiB for all of its tokens and slots. */
const mostSealed = 2048

/** Statuses that trying again does not change. */
const lasting: ReadonlySet<string> = new Set(['InvalidArgument', 'PermissionDenied', 'Unauthenticated', 'Unimplemented', 'NotFound'])

/** Keys of type `kms`. */
export const kmsKeys = (outbound: Pick<Outbound, 'target'>): SealedKind => ({
  token: 'sideroKMS',

  async seal(secret, use) {
    const sealed = await call(outbound, 'Seal', secret, use)
    if (sealed.length === 0 || sealed.length > mostSealed)
      throw new KeyError(`the KMS ${nameOf(use)} answered with ${sealed.length} bytes in place of a sealed key`)
    return { sealedData: Buffer.from(sealed).toString('base64') }
  },

  async unseal({ sealedData }, use) {
    const sealed =
      typeof sealedData === 'string' && sealedData.length <= 2 * mostSealed ? Buffer.from(sealedData, 'base64') : Buffer.alloc(0)
    if (sealed.length === 0) throw new KeyError('its token in the header holds no sealed key')
    const secret = await call(outbound, 'Unseal', new Uint8Array(sealed), use)
    if (secret.length === keyLength) return secret
    throw new KeyError(`the KMS ${nameOf(use)} answered with ${secret.length} bytes in place of a key`)
  },
})

const nameOf = ({ key }: KeyUse): string => `"${key.kmsEndpoint ?? ''}"`

type Verb = 'Seal' | 'Unseal'

async function call(outbound: Pick<Outbound, 'target'>, method: Verb, data: Uint8Array, use: KeyUse): Promise<Uint8Array> {
  if (use.key.kmsEndpoint === siblingEndpoint) return callSiblings(method, data, use)
  const nodeUuid = distinctiveUUID(use.sources)
  const endpoint = parseKmsEndpoint(use.key.kmsEndpoint ?? '')
  if (!endpoint) throw new KeyError(`its endpoint ${nameOf(use)} is none: use https://host or grpc://host:port`)
  const { address, plain } = endpoint
  const channel = connect(outbound.target(address, { plain }), {
    connectTimeout: callLimit,
    metadata: { ':authority': address, ':scheme': plain ? 'http' : 'https' },
  })
  try {
    const reply = await channel.unary(`sidero.kms.KMSService/${method}`, { nodeUuid, data }, { deadline: callLimit })
    return reply.data
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    const verb = method === 'Seal' ? 'seal' : 'unseal'
    throw new KeyError(`the KMS ${nameOf(use)} does not ${verb} it: ${error.message}`, {
      passing: !lasting.has(error.status),
      cause: error,
    })
  } finally {
    channel.close()
  }
}

/** Calls the control planes one after the other until one does it. */
async function callSiblings(method: Verb, data: Uint8Array, { volume, sources: { siblings } }: KeyUse): Promise<Uint8Array> {
  const addresses = siblings?.addresses.slice(0, mostSiblings) ?? []
  if (!siblings || addresses.length === 0) throw new KeyError('no control plane of the cluster is known yet', { passing: true })
  const { ca, token } = siblings
  const reasons: string[] = []
  let passing = false
  for (const address of addresses) {
    const channel = connect({ address, tls: { ca } }, { connectTimeout: siblingLimit, metadata: { token } })
    try {
      const reply = await channel.unary(`sidero.kms.KMSService/${method}`, { nodeUuid: volume, data }, { deadline: siblingLimit })
      return reply.data
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      passing ||= !lasting.has(error.status)
      reasons.push(`${address}: ${error.message}`)
    } finally {
      channel.close()
    }
  }
  const verb = method === 'Seal' ? 'seals' : 'unseals'
  throw new KeyError(`no control plane ${verb} it: ${reasons.join('; ')}`, { passing })
}
