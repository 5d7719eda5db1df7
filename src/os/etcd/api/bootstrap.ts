import { unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { SnapshotHashResult } from '../../../wire/etcd/snapshot-hash.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import type { Kernel } from '../../kernel.ts'
import { dataFolder, snapshotFile } from '../arguments.ts'
import type { Bootstrap } from '../bootstrap.ts'
import { withDisk } from './local.ts'

/** Starts the cluster on this node; once in the lifetime of a cluster. */
export const bootstrap = ({ files, mode }: Pick<Kernel, 'mode'> & { files: Pick<Kernel['files'], 'exists'> }, started: Bootstrap) =>
  unary('machine.MachineService/Bootstrap', ['os:admin'], ({ recoverEtcd, recoverSkipHashCheck }, { store, log }) => {
    const type = store.get(MachineType, 'machine-type')?.spec
    if (!type) throw new RpcError('FailedPrecondition', 'bootstrap: the node has no machine configuration yet: apply one first')
    if (type === 'worker') throw new RpcError('FailedPrecondition', 'bootstrap: this is a worker: bootstrap one control plane node')
    withDisk(store, mode, 'bootstrap')
    if (files.exists(`${dataFolder}/member`))
      throw new RpcError('AlreadyExists', 'bootstrap: etcd has data on this node already, the cluster is bootstrapped')
    if (started.order) throw new RpcError('AlreadyExists', 'bootstrap: this node is being bootstrapped already')
    if (recoverEtcd && !files.exists(snapshotFile))
      throw new RpcError('FailedPrecondition', 'bootstrap: no snapshot was uploaded to recover from')
    const problem = recoverEtcd && !recoverSkipHashCheck ? problemOf(started.uploaded) : undefined
    if (problem) throw new RpcError('InvalidArgument', `bootstrap: ${problem}`)
    log.info('bootstrap requested', { recover: recoverEtcd })
    started.give({ recover: recoverEtcd, skipHashCheck: recoverSkipHashCheck })
    return { messages: [{}] }
  })

/** Why a snapshot with this hash is not recovered from. After a restart of init nothing is known, and etcdutl checks it. */
function problemOf(uploaded: SnapshotHashResult | undefined): string | undefined {
  if (uploaded?.state === 'missing')
    return `the snapshot of ${uploaded.bytes} bytes has no hash at its end: it is cut off; if it was copied out of a data directory, add --recover-skip-hash-check`
  if (uploaded?.state === 'different')
    return `the snapshot is damaged: its hash is ${uploaded.computed}, it should be ${uploaded.expected}; take another`
  return undefined
}
