import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { SecurityState } from '../resources/security-state.ts'

/** The SecureBoot variable of the firmware: four bytes of attributes, then one that is 1 when it is on (UEFI 2.10, section 3.3). */
const secureBootVariable = '/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c'
const signedModulesOnly = '/sys/module/module/parameters/sig_enforce'

/** How the machine was started and what its kernel enforces; a container reports nothing about its host. */
export const observeSecurityState = ({
  mode,
  files,
}: {
  mode: Kernel['mode']
  files: Pick<Kernel['files'], 'exists' | 'read'>
}): Controller =>
  defineController({
    name: 'runtime.SecurityStateController',
    inputs: {},
    outputs: { state: exclusive(SecurityState) },
    reconcile({ state }) {
      const byte = (path: string, at: number) => (mode !== 'container' && files.exists(path) ? files.read(path)[at] : undefined)
      state.put('securitystate', {
        secureBoot: byte(secureBootVariable, 4) === 1,
        ...(byte(signedModulesOnly, 0) === 'Y'.charCodeAt(0) && { moduleSignatureEnforced: true }),
      })
    },
  })
