/**
 * The KMS of the cluster: control planes seal keys of disks for workers, which prove themselves by the token of the machine API.
 * The keys that seal are in the configuration of control planes only, since a worker's disk holds the token and the secret of
 * the cluster beside what was sealed for it.
 */
import type { Method } from '../../rpc/server/method.ts'
import { RpcError } from '../../rpc/status.ts'
import { kmsMethods } from '../kms/methods.ts'
import { admit } from './certificate.ts'

/** The methods; keys and token are read at each call, as they may change. Both are undefined while they are not known. */
export function siblingMethods(keys: () => readonly Uint8Array[] | undefined, token: () => string | undefined): Method[] {
  const sealing = (): [Uint8Array, ...Uint8Array[]] => {
    const [first, ...more] = keys() ?? []
    if (first) return [first, ...more]
    throw new RpcError('FailedPrecondition', 'this control plane has no SiblingKeysConfig to seal with: add the one of the cluster')
  }
  const known = (): string => {
    const found = token()
    if (found === undefined) throw new RpcError('Unavailable', 'the token is not known yet: try again')
    return found
  }
  return kmsMethods(sealing).map((method) => ({ ...method, admit: (metadata) => admit(metadata, known()) }))
}
