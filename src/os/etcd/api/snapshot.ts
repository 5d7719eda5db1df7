import { once } from 'node:events'
import { clientStream, operators, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { SnapshotHash } from '../../../wire/etcd/snapshot-hash.ts'
import type { Kernel } from '../../kernel.ts'
import { dataFolder, snapshotFile } from '../arguments.ts'
import type { Bootstrap } from '../bootstrap.ts'
import { localEtcd } from '../endpoints.ts'
import { onControlPlane, withDisk } from './local.ts'

/** The whole database, followed by the checksum that a restore verifies. */
export const etcdSnapshot = serverStream(
  'machine.MachineService/EtcdSnapshot',
  [...operators, 'os:etcd:backup'],
  async function* (_, { store, signal }) {
    onControlPlane(store, 'etcd snapshot')
    const client = localEtcd(store)
    try {
      for await (const bytes of client.snapshot(signal)) yield { bytes }
    } finally {
      client.close()
    }
  },
)

/** Stores an uploaded snapshot for the bootstrap that follows. */
export const etcdRecover = (
  { files, mode }: Pick<Kernel, 'mode'> & { files: Pick<Kernel['files'], 'exists' | 'openWrite' | 'move' | 'remove'> },
  bootstrap: Bootstrap,
) =>
  clientStream('machine.MachineService/EtcdRecover', ['os:admin'], async (requests, { store }) => {
    onControlPlane(store, 'etcd recover')
    withDisk(store, mode, 'etcd recover')
    if (files.exists(`${dataFolder}/member`))
      throw new RpcError(
        'FailedPrecondition',
        'etcd recover: etcd has data on this node already, a snapshot would not be used: reset the node first',
      )
    const draft = `${snapshotFile}.part`
    const file = files.openWrite(draft, { mode: 0o600 })
    const failed = new Promise<never>((_, reject) => file.once('error', reject))
    failed.catch(() => undefined)
    try {
      const hash = new SnapshotHash()
      for await (const { bytes } of requests) {
        hash.update(bytes)
        if (!file.write(bytes)) await Promise.race([once(file, 'drain'), failed])
      }
      file.end()
      await Promise.race([once(file, 'close'), failed])
      files.move(draft, snapshotFile)
      bootstrap.uploaded = hash.finish()
    } catch (error) {
      file.destroy()
      await files.remove(draft)
      throw error
    }
    return { messages: [{}] }
  })
