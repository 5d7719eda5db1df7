import type { Area } from '../area.ts'
import { declared } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { ensureImage } from '../cri/public.ts'
import { etcdBackupCreate, etcdBackupFetch, etcdBackupList } from './api/backup.ts'
import { etcdBackupStore, etcdIssueSender } from './api/backup-store.ts'
import { bootstrap } from './api/bootstrap.ts'
import { etcdAlarmDisarm, etcdAlarmList, etcdDefragment, etcdStatus } from './api/database.ts'
import { etcdDiscard } from './api/discard.ts'
import { etcdDowngradeCancel, etcdDowngradeEnable, etcdDowngradeValidate } from './api/downgrade.ts'
import { etcdForfeit, etcdLeaveCluster, etcdMemberList, etcdRemoveMember } from './api/members.ts'
import { etcdRecover, etcdSnapshot } from './api/snapshot.ts'
import { Backups } from './backup/backups.ts'
import { missingVolume, targetsOf } from './backup/targets.ts'
import { Bootstrap } from './bootstrap.ts'
import { updatePeerURLs } from './controllers/advertised-peer.ts'
import { backUpEtcd } from './controllers/backup.ts'
import { configEtcd } from './controllers/config.ts'
import { observeMember } from './controllers/member.ts'
import { renderEtcdPki } from './controllers/pki.ts'
import { observeRepair } from './controllers/repair.ts'
import { specEtcd } from './controllers/spec.ts'
import { observeEtcdStart } from './controllers/start.ts'
import { maintainEtcd } from './controllers/upkeep.ts'
import { etcdAt, localEtcd } from './endpoints.ts'
import { etcdutl } from './membership.ts'
import { ReceivedBackups } from './received/received-backups.ts'
import { storeSettings } from './received/settings.ts'
import { repairOf } from './repair/machine.ts'
import { resources } from './resource-types.ts'
import { etcdService } from './services/etcd.ts'
import { othersSuffice } from './view.ts'

/** etcd: its membership, certificates and data. */
export const etcd: Area = {
  name: 'etcd',
  resources,
  parts(machine) {
    const { kernel, images, store, supervisor, events } = machine
    const order = new Bootstrap()
    const backups = new Backups({
      clock: machine.clock,
      log: machine.log,
      files: kernel.files,
      local: () => localEtcd(store),
      etcdutl: (args, signal) => etcdutl(machine, args, signal),
      publish: (event) => events.publish('ichor.v1.EtcdBackupEvent', event),
    })
    const received = new ReceivedBackups({
      clock: machine.clock,
      log: machine.log,
      files: kernel.files,
      settings: () => storeSettings(declared(store.get(MachineConfig, 'v1alpha1'))),
      missing: (volume) => missingVolume(machine, volume),
      publish: (event) => events.publish('ichor.v1.EtcdBackupEvent', event),
    })
    const repair = repairOf(machine)
    return {
      controllers: [
        configEtcd,
        specEtcd,
        renderEtcdPki(kernel),
        observeEtcdStart({
          supervisor,
          pull: (image, signal) => ensureImage(images, image, { store, signal, note: () => {} }),
          othersSuffice: (own) => othersSuffice(store, own),
        }),
        observeMember({ store, bootstrap: order }),
        observeRepair({ store, repair }),
        updatePeerURLs({ store }),
        maintainEtcd({
          local: () => localEtcd(store),
          at: (member) => etcdAt(store, member),
          publish: (event) => events.publish('ichor.v1.EtcdUpkeepEvent', event),
        }),
        backUpEtcd(backups, targetsOf(machine)),
      ],
      services: [etcdService(machine, order, repair)],
      methods: [
        bootstrap(kernel, order),
        etcdMemberList,
        etcdRemoveMember,
        etcdLeaveCluster(machine),
        etcdForfeit,
        etcdRecover(kernel, order),
        etcdSnapshot,
        etcdAlarmList,
        etcdAlarmDisarm,
        etcdDefragment,
        etcdStatus,
        etcdDowngradeValidate,
        etcdDowngradeEnable,
        etcdDowngradeCancel,
        etcdBackupList(backups, received),
        etcdBackupCreate(backups),
        etcdBackupFetch(backups, received),
        ...etcdBackupStore(received),
        etcdIssueSender,
        etcdDiscard(machine),
      ],
    }
  },
}
