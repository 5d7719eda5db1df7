import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { SeccompProfile } from '../resources/seccomp-profile.ts'

const folder = '/var/lib/kubelet/seccomp/profiles'

/** The profiles of the machine configuration. */
export const configSeccompProfiles: Controller = defineController({
  name: 'cri.SeccompProfileController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { profiles: exclusive(SeccompProfile) },
  reconcile({ config, profiles }) {
    const given = declared(config.get('v1alpha1'))?.machine.seccompProfiles ?? []
    for (const { name, value = {} } of given) if (name) profiles.put(name, { name, value })
  },
})

/** The files that pods name by `localhostProfile`. The file of a removed profile is deleted. */
export const writeSeccompProfiles = ({ mode, files }: Pick<Kernel, 'mode' | 'files'>): Controller =>
  defineController({
    name: 'cri.SeccompProfileFileController',
    inputs: { disk: weak(VolumeMountStatus, { id: mountId('EPHEMERAL') }), profiles: weak(SeccompProfile) },
    outputs: {},
    async reconcile({ disk, profiles }) {
      if (mode !== 'container' && !disk.get(mountId('EPHEMERAL'))) return
      files.mkdirAll(folder, { mode: 0o700 })
      const wanted = profiles.list()
      for (const { spec } of wanted) {
        const [path, content] = [`${folder}/${spec.name}`, JSON.stringify(spec.value)]
        if (files.readTextIfThere(path) !== content) await files.writeAtomic(path, content, { mode: 0o644 })
      }
      const names = new Set(wanted.map(({ spec }) => spec.name))
      for (const name of files.list(folder)) if (!names.has(name)) await files.remove(`${folder}/${name}`)
    },
  })
