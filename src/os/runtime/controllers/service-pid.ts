import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import { errnoOf } from '../../../wire/errno.ts'
import type { Machine } from '../../area.ts'
import type { Kernel } from '../../kernel.ts'
import { ServicePID } from '../resources/service.ts'

/** Process id and mount namespace of each running service; a service without a process of its own runs in init. */
export const observeServicePids = ({
  supervisor,
  kernel: { files },
}: Pick<Machine, 'supervisor'> & { kernel: { files: Pick<Kernel['files'], 'readlink'> } }): Controller =>
  defineController({
    name: 'runtime.ServicePIDController',
    inputs: {},
    outputs: { pids: exclusive(ServicePID) },
    start({ wake, signal }) {
      signal.addEventListener('abort', supervisor.subscribe(wake))
    },
    reconcile({ pids }) {
      for (const { id, state, pid = process.pid } of supervisor.list()) {
        if (state !== 'Running') continue
        const mountNamespace = namespaceOf(files, pid)
        if (mountNamespace !== undefined) pids.put(id, { pid, mountNamespace })
      }
    },
  })

/** The mount namespace as the kernel names it; undefined once the process has ended, which the supervisor is about to report. */
function namespaceOf(files: Pick<Kernel['files'], 'readlink'>, pid: number): string | undefined {
  try {
    return files.readlink(`/proc/${pid}/ns/mnt`)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ESRCH') return undefined
    throw error
  }
}
