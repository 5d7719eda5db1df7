import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { EtcFileStatus } from '../../files/resources/etc-file.ts'
import { Service } from '../../runtime/resources/service.ts'
import { type ConfigRead, configFile } from '../config-read.ts'

/** Restarts the pods' daemon when its configuration differs from the one it has read. Its containers keep running. */
export const restartOnConfig = ({ supervisor, store }: Pick<Machine, 'supervisor' | 'store'>, read: ConfigRead): Controller =>
  defineController({
    name: 'cri.ConfigRestartController',
    inputs: { services: weak(Service, { id: 'cri' }), files: weak(EtcFileStatus, { id: configFile }) },
    outputs: {},
    async reconcile({ services, log }) {
      if (!services.get('cri')?.spec.running || !read.isStale(store)) return
      log.info('restarting containerd with its new configuration')
      await supervisor.restart('cri')
    },
  })
