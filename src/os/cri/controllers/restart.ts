import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { EtcFileStatus } from '../../files/resources/etc-file.ts'
import { Environment } from '../../runtime/resources/environment.ts'
import { Service } from '../../runtime/resources/service.ts'
import type { ConfigRead } from '../config-read.ts'

/** Restarts the pods' daemon when its configuration, the trusted authorities or its variables have changed. Its containers keep running. */
export const restartOnConfig = ({ supervisor, store }: Pick<Machine, 'supervisor' | 'store'>, read: ConfigRead): Controller =>
  defineController({
    name: 'cri.ConfigRestartController',
    inputs: { services: weak(Service, { id: 'cri' }), files: weak(EtcFileStatus), environment: weak(Environment) },
    outputs: {},
    async reconcile({ services, log }) {
      if (!services.get('cri')?.spec.running || !read.isStale(store)) return
      log.info('restarting containerd with its new configuration')
      await supervisor.restart('cri')
    },
  })
