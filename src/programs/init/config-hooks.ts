/** What the apply service uses of the areas above config. */
import { background } from '../../cosi/background.ts'
import type { Machine } from '../../os/area.ts'
import type { Hooks } from '../../os/config/apply/config-apply.ts'
import { inMaintenance } from '../../os/config/maintenance.ts'
import { missingFileRules } from '../../os/files/user-files.ts'
import { refuseInstall, refuseSelector } from '../../os/lifecycle/install/install-system.ts'
import { reboot } from '../../os/lifecycle/stop.ts'

/** The hooks of a machine, which is complete when the first of them is called. */
export const configHooks = (machine: () => Machine): Hooks => ({
  rules({ machine: { files } = {} }, report) {
    // Before there is a configuration /var is not mounted yet.
    if (!inMaintenance(machine().store)) missingFileRules(machine().kernel.files, files, report)
  },
  reboot() {
    const { sequencer, log } = machine()
    background(() => sequencer.run('reboot', reboot(machine())), log, 'reboot failed')
  },
  refuseSelector: (selector) => refuseSelector(machine(), selector),
  refuseFirst: (config) => refuseInstall(machine(), config.v1alpha1?.machine?.install),
})
