import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { BootedEntry } from '../../runtime/resources/booted-entry.ts'
import { SecurityState } from '../../runtime/resources/security-state.ts'
import { loaderEntry } from '../slots/boot-disk.ts'

/** The entry of systemd-boot that this machine was started from; other boot loaders do not say. */
export const observeBootedEntry = (kernel: { files: Pick<Kernel['files'], 'exists' | 'read'> }): Controller =>
  defineController({
    name: 'runtime.BootedEntryController',
    inputs: { security: weak(SecurityState) },
    outputs: { entry: exclusive(BootedEntry) },
    reconcile({ entry }) {
      const bootedEntry = loaderEntry({ kernel })
      if (bootedEntry) entry.put('booted', { bootedEntry })
    },
  })
