import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { EtcFileStatus } from '../../files/resources/etc-file-status.ts'
import { Service } from '../../runtime/resources/service.ts'

const file = 'cri/conf.d/cri.toml'

/** Starts the pods' daemon anew when its configuration is another than the one it has read; what it runs goes on. */
export const restartOnConfig = ({ supervisor }: Pick<Machine, 'supervisor'>): Controller => {
  let read: { run: number; version: string } | undefined
  return defineController({
    name: 'cri.ConfigRestartController',
    inputs: { services: weak(Service, { id: 'cri' }), files: weak(EtcFileStatus, { id: file }) },
    outputs: {},
    async reconcile({ services, files, log }) {
      const run = services.get('cri')?.metadata.created.getTime()
      const version = files.get(file)?.spec.specVersion
      if (run === undefined || version === undefined) return
      if (read?.run !== run) read = { run, version }
      if (read.version === version) return
      log.info('containerd begins anew with its new configuration')
      await supervisor.restart('cri')
    },
  })
}
