import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { DevicesStatus } from '../resources/devices-status.ts'
import { Service } from '../resources/service.ts'
import { settleTimeOf } from '../settle-time.ts'

/**
 * Whether devices have been found and named: a container gets its own from the host, elsewhere udevd must have run, and the time
 * must have passed that the kernel command line gives devices which appear late.
 */
export function observeDevicesReady({ mode, files }: { mode: Kernel['mode']; files: Pick<Kernel['files'], 'readText'> }): Controller {
  const settle = mode === 'container' ? 0 : settleTimeOf(files.readText('/proc/cmdline'))
  let wait: { readonly left: number } | undefined
  return defineController({
    name: 'runtime.DevicesStatusController',
    inputs: { services: weak(Service, { id: 'udevd' }) },
    outputs: { status: exclusive(DevicesStatus) },
    reconcile({ services, status, clock, wakeIn, log }) {
      const udevd = services.get('udevd')?.spec
      if (mode !== 'container' && !(udevd?.running && udevd.healthy)) return
      if (settle > 0 && !wait) {
        wait = clock.deadline(settle)
        log.info('waiting for devices that appear late', { seconds: settle / 1000 })
      }
      if (wait && wait.left > 0) wakeIn(wait.left)
      else status.put('devices', { ready: true })
    },
  })
}
