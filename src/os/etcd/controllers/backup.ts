import { createHash } from 'node:crypto'
import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { Service } from '../../runtime/resources/service.ts'
import type { Backups } from '../backup/backups.ts'
import { backupProblems } from '../backup/problems.ts'
import { backupDocument, backupSettings, type OpenTarget } from '../backup/settings.ts'
import { EtcdBackup, EtcdBackupStatus } from '../resources/etcd-backup.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'

/** Milliseconds between rounds. */
const interval = 15_000

/** Takes backups of etcd as the configuration declares them, and reports them. */
export const backUpEtcd = (backups: Backups, open: OpenTarget): Controller => {
  let used = ''
  return defineController({
    name: 'etcd.BackupController',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      services: weak(Service, { id: 'etcd' }),
      specs: weak(EtcdSpec, { id: 'etcd' }),
    },
    outputs: { status: exclusive(EtcdBackupStatus), stored: exclusive(EtcdBackup), diagnostics: shared(Diagnostic) },
    reconcile({ config, services, specs, status, stored, diagnostics, log, clock, background }) {
      const read = declared(config.get('v1alpha1'))
      const node = specs.get('etcd')?.spec.name
      const document = node === undefined ? undefined : backupDocument(read)
      // With the identity of the cluster, which the names of backups hold. A hash, since keys of tasks are logged.
      const key = document
        ? createHash('sha256')
            .update(JSON.stringify([document, read?.cluster.id]))
            .digest('hex')
        : ''
      if (key !== used) {
        used = key
        backups.configure(document && backupSettings(read, open))
      }
      const { settings } = backups
      if (!settings || node === undefined) return
      const { backups: found } = backups.listing
      for (const { target, name, taken, revision, size, state } of found)
        stored.put(`${target}/${name}`, { target, name, taken: taken.toISOString(), revision, size, state })
      const spec = backups.status(settings)
      status.put('etcd', spec)
      for (const { id, message, details } of backupProblems(spec, backups.listing, clock.now(), settings.targets))
        diagnostics.put(id, { message, details: [...details] })
      if (!services.get('etcd')?.spec.healthy) return
      background({ name: `backups ${node}`, of: key }, async (signal, wake, report) => {
        while (!signal.aborted) {
          try {
            await backups.round(node, signal, wake)
            report()
          } catch (error) {
            report(error)
            log.debug('backups of etcd are looked at again', { error: messageOf(error) })
          }
          wake()
          await clock.sleep(interval, signal)
        }
      })
    },
  })
}
