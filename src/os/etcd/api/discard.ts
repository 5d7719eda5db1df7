import { unary } from '../../../rpc/server/method.ts'
import type { Machine } from '../../area.ts'
import { dataFolder } from '../arguments.ts'
import { onControlPlane, withDisk } from './local.ts'

/** Where the data goes that a restore replaces; it stays there until the next restore. */
export const replacedFolder = `${dataFolder}.replaced`

/** Stops etcd and moves its data aside. etcd stays stopped until the node restarts, so that no member joins the old cluster again. */
export const etcdDiscard = ({ kernel: { files, mode }, supervisor, log }: Pick<Machine, 'kernel' | 'supervisor' | 'log'>) =>
  unary('ichor.v1.EtcdBackupService/Discard', ['os:admin'], async ({ dryRun }, { store }) => {
    onControlPlane(store, 'etcd discard')
    withDisk(store, mode, 'etcd discard')
    const member = `${dataFolder}/member`
    const data = files.exists(member)
    const size = data ? (files.lstatIfThere(`${member}/snap/db`)?.size ?? 0) : 0
    if (dryRun) return { messages: [{ data, size }] }
    log.info('discarding the data of etcd', { data, size })
    await supervisor.stop('etcd')
    if (!files.exists(member)) return { messages: [{ data: false }] }
    await files.remove(replacedFolder)
    files.mkdirAll(replacedFolder, { mode: 0o700 })
    files.move(member, `${replacedFolder}/member`)
    return { messages: [{ data, size, movedTo: replacedFolder }] }
  })
