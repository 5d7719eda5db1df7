import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { policyKeyFingerprint } from '../../block/public.ts'
import { isSecureBoot } from '../../hardware/public.ts'
import type { Kernel } from '../../kernel.ts'
import { SecurityState } from '../resources/security-state.ts'

/** A variable of systemd's stub, which exists only where it started the kernel (systemd-stub(7)). */
const stubVariable = '/sys/firmware/efi/efivars/StubInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f'
const signedModulesOnly = '/sys/module/module/parameters/sig_enforce'
const enforcing = '/sys/fs/selinux/enforce'

type Files = Pick<Kernel['files'], 'exists' | 'read' | 'readTextIfThere'>

/** How the machine was started and what its kernel enforces; a container reports nothing about its host. */
export const observeSecurityState = ({ mode, files }: { mode: Kernel['mode']; files: Files }): Controller =>
  defineController({
    name: 'runtime.SecurityStateController',
    inputs: {},
    outputs: { state: exclusive(SecurityState) },
    reconcile({ state, log }) {
      if (mode === 'container') {
        state.put('securitystate', { secureBoot: false })
        return
      }
      const fingerprint = () => {
        try {
          return policyKeyFingerprint(files)
        } catch (error) {
          log.error('PCR signing key of the image not readable', { error: messageOf(error) })
          return undefined
        }
      }
      const pcrSigningKeyFingerprint = fingerprint()
      state.put('securitystate', {
        secureBoot: isSecureBoot(files),
        ...(pcrSigningKeyFingerprint !== undefined && { pcrSigningKeyFingerprint }),
        selinuxState: seLinuxState(files),
        fipsState: 'disabled', // the runtime's cryptography has no such mode
        ...(files.exists(stubVariable) && { bootedWithUKI: true }),
        ...(files.readTextIfThere(signedModulesOnly)?.trim() === 'Y' && { moduleSignatureEnforced: true }),
      })
    },
  })

/** SELinux counts where the operator requested it on the command line, by either parameter, and the kernel uses it. */
function seLinuxState(files: Files): 'disabled' | 'enabled, permissive' | 'enabled, enforcing' {
  const line = parseCommandLine(files.readTextIfThere('/proc/cmdline') ?? '')
  const requested = parameterValues(line, 'selinux').at(-1) === '1' || parameterValues(line, 'security').at(-1) === 'selinux'
  if (!requested || !files.exists(enforcing)) return 'disabled'
  return files.readTextIfThere(enforcing)?.trim() === '1' ? 'enabled, enforcing' : 'enabled, permissive'
}
