import { ichor } from '../../../rpc/enums.ts'
import { operators, serverStream, unary } from '../../../rpc/server/method.ts'
import type { StatusName } from '../../../rpc/status.ts'
import { RpcError } from '../../../rpc/status.ts'
import { decrypt } from '../../../wire/age/file.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Backups } from '../backup/backups.ts'
import type { BackupListing } from '../backup/target.ts'
import type { ReceivedBackups } from '../received/received-backups.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'
import { etcdReaders, onControlPlane } from './local.ts'

/** The time stamps of a reply. */
const seconds = (time: Date) => ({ seconds: Math.floor(time.getTime() / 1000), nanos: 0 })

/** Lists the backups in the targets of this node, and those that it keeps for others. */
export const etcdBackupList = (backups: Backups, received: ReceivedBackups) =>
  unary('ichor.v1.EtcdBackupService/List', etcdReaders, async (_, { store, signal }) => {
    onControlPlane(store, 'etcd backup list')
    const [own, others] = [await backups.list(signal), await received.list(signal)]
    return {
      messages: [
        {
          backups: [...own.backups, ...others.backups].map(listed),
          errors: [...own.failures, ...others.failures],
          foreign: [...own.foreign, ...others.foreign],
        },
      ],
    }
  })

/** A backup as replies have it. */
export const listed = ({ target, name, taken, revision, size, state }: BackupListing['backups'][number]) => ({
  target,
  name,
  taken: seconds(taken),
  revision,
  size,
  state: states[state],
})

const { UNCHECKED, INTACT, DAMAGED } = ichor.v1.EtcdBackup.State
const states = { unchecked: UNCHECKED, intact: INTACT, damaged: DAMAGED }

/** Takes a backup now. */
export const etcdBackupCreate = (backups: Backups) =>
  unary('ichor.v1.EtcdBackupService/Create', operators, async (_, { store, signal }) => {
    onControlPlane(store, 'etcd backup create')
    const node = store.get(EtcdSpec, 'etcd')?.spec.name
    if (node === undefined) throw new RpcError('Unavailable', 'etcd backup create: etcd does not run on this node yet')
    try {
      const { backup, stored, failures } = await backups.create(node, signal)
      const { name, revision, keys, size } = backup
      return { messages: [{ name, revision, keys, size, targets: [...stored], errors: [...failures] }] }
    } catch (error) {
      throw refusal('etcd backup create', error)
    }
  })

/** The bytes of a backup, as they are stored or decrypted with this node's identity. */
export const etcdBackupFetch = (backups: Backups, received: ReceivedBackups) =>
  serverStream(
    'ichor.v1.EtcdBackupService/Fetch',
    [...operators, 'os:etcd:backup'],
    async function* ({ name, decrypt: plain }, { store, signal }) {
      onControlPlane(store, 'etcd backup fetch')
      const identity = backups.settings?.identity
      if (plain && !identity)
        throw new RpcError(
          'FailedPrecondition',
          'etcd backup fetch: this node has no identity to decrypt it with: give the identity of a recipient with --identity',
        )
      try {
        const stored = (await received.find(name, signal)) ?? (await backups.find(name, signal)).target.read(name, signal)
        for await (const bytes of plain && identity ? decrypt(stored, [identity]) : stored) yield { bytes }
      } catch (error) {
        throw refusal('etcd backup fetch', error)
      }
    },
  )

function refusal(what: string, error: unknown): unknown {
  if (error instanceof RpcError) return error
  const status: StatusName = error instanceof DecodeError ? 'DataLoss' : 'Unavailable'
  return new RpcError(status, `${what}: ${messageOf(error)}`)
}
