import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { EtcFileSpec } from '../../files/resources/etc-file.ts'
import type { Kernel } from '../../kernel.ts'
import { baseRuntimeSpec } from '../base-runtime-spec.ts'
import { basePart, mainFile, mergeParts, registriesPart, verificationPart } from '../parts.ts'
import { RegistryConfig } from '../resources/registry-config.ts'

/** The user's own part: a file of the machine configuration. */
const customization = '/etc/cri/conf.d/20-customization.part'
const file = (contents: string) => ({ contents, mode: 0o600, selinux_label: '' })

/** The configuration of the pods' daemon, merged from its parts. */
export const writeConfig = ({ capabilities }: Pick<Kernel, 'capabilities'>): Controller =>
  defineController({
    name: 'files.CRIConfigPartsController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), registries: weak(RegistryConfig, { id: 'registries' }) },
    outputs: { files: shared(EtcFileSpec) },
    reconcile({ config, registries, files }) {
      const given = registries.get('registries')?.spec
      if (!given) return
      const lowerOomScores = capabilities.capabilities().effective.includes('sys_resource')
      const users = declared(config.get('v1alpha1'))?.machine.files ?? []
      const parts = users.filter(({ path }) => path === customization).map(({ content = '' }) => ({ name: customization, text: content }))
      const merged = mergeParts(basePart({ lowerOomScores }), [
        { name: '01-registries.part', text: registriesPart(given) },
        ...parts,
        // The last one: the rules of the configuration hold whatever a file of it changes in containerd.
        { name: '99-verification.part', text: verificationPart },
      ])
      files.put('cri/containerd.toml', file(mainFile))
      files.put('cri/conf.d/cri.toml', file(merged))
    },
  })

/** The specification that every container starts with: containerd's default, merged with the user's overrides. */
export const writeBaseSpec: Controller = defineController({
  name: 'files.CRIBaseRuntimeSpecController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { files: shared(EtcFileSpec) },
  reconcile({ config, files }) {
    const overrides = declared(config.get('v1alpha1'))?.machine.baseRuntimeSpecOverrides ?? {}
    files.put('cri/conf.d/base-spec.json', file(JSON.stringify(baseRuntimeSpec(overrides))))
  },
})
