import { type Controller, defineController, strong } from '../../../cosi/controller.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Kernel } from '../../kernel.ts'
import { mountId, VolumeMountStatus } from '../resources/volume-mount.ts'
import { reserveOf, spaceReserve } from '../space-reserve.ts'

/** It is given up when less than this share of it is free, and taken again when so many times of it are free. */
const low = 0.25
const ample = 4

/** Milliseconds between two looks. statfs(2) of a mounted disk file system reads memory only. */
const interval = 2_000

interface Dependencies {
  readonly files: Pick<Kernel['files'], 'statfs' | 'allocate' | 'exists' | 'removeFile' | 'mkdirAll'>
}

/**
 * Keeps space of EPHEMERAL back while there is enough, and gives it up when others have filled the rest: containerd, the kubelet
 * and etcd need some to remove what takes the space, and logs go on.
 */
export const keepSpaceReserve = ({ files }: Dependencies): Controller =>
  defineController({
    name: 'block.SpaceReserveController',
    // Held by a finalizer: without its mount the path would be one of the root file system.
    inputs: { disk: strong(VolumeMountStatus, { id: mountId('EPHEMERAL') }) },
    outputs: {},
    reconcile({ disk, log, wakeIn }) {
      const mounted = disk.get(mountId('EPHEMERAL'))
      if (!mounted || mounted.spec.readOnly) return
      const { size, available } = files.statfs('/var')
      const reserve = reserveOf(size)
      if (files.exists(spaceReserve)) {
        if (available < reserve * low) {
          files.removeFile(spaceReserve)
          log.warn('EPHEMERAL is full, its reserve is given up', { bytes: reserve, available })
        }
      } else if (available > reserve * ample) take(reserve)
      wakeIn(interval)

      function take(bytes: number): void {
        files.mkdirAll('/var/system')
        try {
          files.allocate(spaceReserve, bytes)
          log.info('space of EPHEMERAL reserved', { bytes })
        } catch (error) {
          // Others were faster.
          if (!failedWith(error, 'ENOSPC')) throw error
        }
      }
    },
  })
