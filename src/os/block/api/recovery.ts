import { inMaintenanceOr, type Method, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { parseRecipient } from '../../../wire/age/keys.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { newRecoveryKey, parseRecoveryKey } from '../../../wire/luks2/recovery-key.ts'
import type { Machine } from '../../area.ts'
import { mostRecipients } from '../documents/disk-recovery.ts'
import type { EncryptedVolumes } from '../encryption/encrypted-volumes.ts'
import { escrowOf } from '../encryption/recovery.ts'
import { VolumeRecovery, VolumeRecoveryRequest } from '../resources/volume-recovery.ts'

const noVolumes = (what: string): never => {
  throw new RpcError('Unimplemented', `${what}: a container has no encrypted volumes, its host encrypts its files`)
}

/** The same methods in a container. */
export const recoveryRefused: Method[] = [
  unary('ichor.v1.VolumeService/NewRecoveryKey', ['os:admin'], () => noVolumes('recovery key')),
  unary('ichor.v1.VolumeService/Unlock', inMaintenanceOr(['os:admin']), () => noVolumes('unlock')),
]

/** Recovery keys of encrypted volumes. */
export function recoveryMethods({ store, log }: Pick<Machine, 'store' | 'log'>, volumes: EncryptedVolumes): Method[] {
  let trying = false
  const wake = () => {
    const { request } = store.get(VolumeRecoveryRequest, 'recovery')?.spec ?? { request: 0 }
    store.put(VolumeRecoveryRequest, 'recovery', { request: request + 1 })
  }
  const unlock = async (key: string): Promise<string[]> => {
    const locked = store.list(VolumeRecovery).filter(({ spec }) => spec.locked)
    if (locked.length === 0) throw new RpcError('FailedPrecondition', 'unlock: no volume waits for a recovery key')
    const opened = await volumes.giveRecovery(key)
    if (opened.length === 0)
      throw new RpcError(
        'PermissionDenied',
        `unlock: the key opens none of the volumes ${locked.map(({ metadata }) => metadata.id).join(', ')}`,
      )
    log.warn('volumes unlocked with their recovery key', { volumes: opened })
    wake()
    return opened
  }
  return [
    unary('ichor.v1.VolumeService/NewRecoveryKey', ['os:admin'], async ({ recipients }) => {
      if (volumes.open.length === 0) throw new RpcError('FailedPrecondition', 'recovery key: no encrypted volume is open on this machine')
      const key = newRecoveryKey()
      const outcome = [...(await volumes.replaceRecovery(key, await escrowOf(key, recipientsOf(recipients))))]
      const failed = outcome.flatMap(([id, reason]) => (reason === undefined ? [] : `${id}: ${reason}`))
      if (failed.length === outcome.length) throw new RpcError('Internal', `recovery key: ${failed.join('; ')}`)
      wake()
      return { messages: [{ key, volumes: outcome.flatMap(([id, reason]) => (reason === undefined ? id : [])), failed }] }
    }),
    unary('ichor.v1.VolumeService/Unlock', inMaintenanceOr(['os:admin']), async ({ recoveryKey }) => {
      const key = checked(recoveryKey)
      // Deriving a key takes the machine seconds, and every caller may be a stranger.
      if (trying) throw new RpcError('ResourceExhausted', 'unlock: another recovery key is being tried, try again in some seconds')
      trying = true
      try {
        return { messages: [{ volumes: await unlock(key) }] }
      } finally {
        trying = false
      }
    }),
  ]
}

function checked(key: string): string {
  try {
    return parseRecoveryKey(key)
  } catch (error) {
    // Neither the key nor a part of it is repeated.
    if (error instanceof DecodeError) throw new RpcError('InvalidArgument', `unlock: the recovery key is mistyped: ${error.message}`)
    throw error
  }
}

function recipientsOf(recipients: readonly string[]): Uint8Array[] {
  if (recipients.length > mostRecipients) throw new RpcError('InvalidArgument', `recovery key: at most ${mostRecipients} recipients`)
  return recipients.map((recipient) => {
    try {
      return parseRecipient(recipient)
    } catch {
      throw new RpcError('InvalidArgument', `recovery key: "${recipient}" is no recipient of age (age1…)`)
    }
  })
}
