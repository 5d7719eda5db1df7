import { type Controller, defineController, strong, weak } from '../../../cosi/controller.ts'
import { pause } from '../../../timing/pause.ts'
import type { Machine } from '../../area.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import type { Kernel } from '../../kernel.ts'
import { kernelLines } from '../kernel-lines.ts'

/**
 * Milliseconds between two looks at how much a log holds back, and looks after which everything is written. A log in memory holds
 * 512 KiB, so of less than 2 MiB a second nothing is missing on the disk; lookInterval * looksPerFlush is 15 seconds.
 */
const lookInterval = 200
const looksPerFlush = 75

/** Writes logs to the disk from its mount until its release; the folder of a container is there from the start. */
export const persistLogs = ({
  kernel,
  logFiles,
}: Pick<Machine, 'logFiles'> & { kernel: Pick<Kernel, 'mode' | 'kmsg' | 'time'> }): Controller =>
  defineController({
    name: 'runtime.LogPersistenceController',
    inputs: {
      // Held by a finalizer: the disk is released after the last line is written.
      disk: strong(VolumeMountStatus, { id: mountId('EPHEMERAL') }),
      folder: weak(VolumeMountStatus, { id: mountId('/var/log') }),
    },
    outputs: {},
    async reconcile({ disk, folder, background }) {
      const own = kernel.mode !== 'container'
      if (own && !(disk.get(mountId('EPHEMERAL')) && folder.get(mountId('/var/log')))) return logFiles.close()
      logFiles.open()
      background('write', async (signal) => {
        for (let looks = 0; !signal.aborted; looks++) {
          await logFiles.flush({ large: looks % looksPerFlush !== 0 })
          await pause(lookInterval, signal)
        }
      })
      // A container would write that of its host.
      if (own)
        background('kernel', async (signal) => {
          for await (const line of kernelLines(kernel, { follow: true, signal })) logFiles.kernel.write(line)
        })
    },
  })
