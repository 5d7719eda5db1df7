import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { BootedEntry } from '../../runtime/resources/booted-entry.ts'
import { SecurityState } from '../../runtime/resources/security-state.ts'
import { loaderEntry } from '../slots/boot-disk.ts'

/** Publishes the booted systemd-boot entry. Other boot loaders do not report one. */
export const observeBootedEntry = (kernel: { files: Pick<Kernel['files'], 'exists' | 'read'> }): Controller =>
  defineController({
    name: 'runtime.BootedEntryController',
    effects: 'none',
    inputs: { security: weak(SecurityState) },
    outputs: { entry: exclusive(BootedEntry) },
    reconcile({ entry }) {
      const bootedEntry = loaderEntry({ kernel })
      if (bootedEntry) entry.put('booted', { bootedEntry })
    },
  })
