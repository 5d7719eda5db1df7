import { day, fromBase64, newCertificate, year } from '../../../pki/certificate.ts'
import { callerName } from '../../../rpc/caller-metadata.ts'
import { type Context, clientStream, type Method, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Role } from '../../../wire/x509/roles.ts'
import { OSRootSecret } from '../../secrets/resources/os-root-secret.ts'
import { isSenderName } from '../documents/etcd-backup-store.ts'
import type { ReceivedBackups } from '../received/received-backups.ts'
import { listed } from './backup.ts'
import { onControlPlane } from './local.ts'

const role: Role = 'ichor:etcd:store'
/** An administrator may call them too, and is still refused unless the certificate has the name of a sender. */
const senders: readonly Role[] = ['os:admin', role]

/** The name in the certificate of the caller. Names of senders have no character that apid would encode. */
const senderOf = ({ metadata }: Pick<Context, 'metadata'>): string => metadata[callerName]?.[0] ?? ''

/** The methods of a sender. */
export const etcdBackupStore = (received: ReceivedBackups): Method[] => [
  unary('ichor.v1.EtcdBackupStoreService/Offer', senders, async (offer, context) => {
    onControlPlane(context.store, 'etcd backup store')
    return { messages: [await received.offer(senderOf(context), offer, context.signal)] }
  }),
  clientStream('ichor.v1.EtcdBackupStoreService/Append', senders, async (requests, context) => {
    onControlPlane(context.store, 'etcd backup store')
    const messages = requests[Symbol.asyncIterator]()
    const first = await messages.next()
    if (first.done) throw new RpcError('InvalidArgument', 'etcd backup store: the name of the backup is required')
    const chunks = async function* () {
      yield first.value.data
      for (let next = await messages.next(); !next.done; next = await messages.next()) yield next.value.data
    }
    await received.append(senderOf(context), first.value, chunks(), context.signal)
    return { messages: [{}] }
  }),
  unary('ichor.v1.EtcdBackupStoreService/Held', senders, async (_, context) => {
    onControlPlane(context.store, 'etcd backup store')
    const { backups, foreign } = await received.of(senderOf(context), context.signal)
    return { messages: [{ backups: backups.map((backup) => listed({ ...backup, target: '' })), foreign: [...foreign] }] }
  }),
  serverStream('ichor.v1.EtcdBackupStoreService/Read', senders, async function* ({ name }, context) {
    onControlPlane(context.store, 'etcd backup store')
    for await (const bytes of await received.read(senderOf(context), name, context.signal)) yield { bytes }
  }),
]

/** The longest lifetime of a sender's certificate, in milliseconds. */
const longest = 10 * year

/** Issues the certificate of a sender. */
export const etcdIssueSender = unary('ichor.v1.EtcdBackupStoreService/IssueSender', ['os:admin'], ({ sender, lifetime }, { store }) => {
  const what = 'etcd backup sender'
  onControlPlane(store, what)
  if (!isSenderName(sender)) throw new RpcError('InvalidArgument', `${what}: a name of letters, digits and hyphens is required`)
  const milliseconds = (lifetime?.seconds ?? 0) * 1000 || year
  if (milliseconds < day / 24 || milliseconds > longest)
    throw new RpcError('InvalidArgument', `${what}: a certificate is valid for at least an hour and at most ten years`)
  const { issuingCA, acceptedCAs = [] } = store.get(OSRootSecret, 'os')?.spec ?? {}
  if (!issuingCA?.key) throw new RpcError('FailedPrecondition', `${what}: this machine holds no authority: ask a control plane`)
  const { crt, key } = newCertificate({
    ca: { crt: fromBase64(issuingCA.crt), key: fromBase64(issuingCA.key) },
    subject: { commonName: sender, organizations: [role] },
    usage: ['clientAuth'],
    lifetime: milliseconds,
  })
  const ca = acceptedCAs.map((authority) => fromBase64(authority.crt)).join('\n')
  return { messages: [{ ca: Buffer.from(ca), crt: Buffer.from(crt), key: Buffer.from(key) }] }
})
