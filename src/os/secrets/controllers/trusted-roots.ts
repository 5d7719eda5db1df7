import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { certificateBundle, EtcFileSpec } from '../../files/resources/etc-file.ts'
import type { Kernel } from '../../kernel.ts'
import { TrustedRootsConfig } from '../documents/trusted-roots.ts'

/** Writes the authorities of the image and those of the configuration into the file that programs read. */
export const writeTrustedRoots = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere'> }): Controller => {
  // Read once, before the file of this controller is mounted over it.
  let system: string | undefined
  return defineController({
    name: 'secrets.TrustedRootsController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { etc: shared(EtcFileSpec) },
    reconcile({ config, etc }) {
      system ??= files.readTextIfThere(`/etc/${certificateBundle}`) ?? ''
      const added = findAll(declared(config.get('v1alpha1')), TrustedRootsConfig)
      const sections = added.map(({ name = '', certificates = '' }) => `\n${name}:\n${'='.repeat(name.length + 1)}\n${certificates}`)
      etc.put(certificateBundle, { contents: [system, ...sections].join('\n'), mode: 0o644, selinux_label: '' })
    },
  })
}
