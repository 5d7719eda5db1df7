import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { EtcFileSpec } from '../../files/resources/etc-file.ts'
import { hostsFiles } from '../hosts-files.ts'
import { registriesPart } from '../parts.ts'
import { RegistryConfig } from '../resources/registry-config.ts'

/** Writes containerd's registry configuration. Endpoints take effect at once, credentials after a restart of containerd. */
export const writeRegistries: Controller = defineController({
  name: 'files.CRIRegistryConfigController',
  effects: 'none',
  inputs: { registries: weak(RegistryConfig, { id: 'registries' }) },
  outputs: { files: shared(EtcFileSpec) },
  reconcile({ registries, files }) {
    const spec = registries.get('registries')?.spec
    if (!spec) return
    files.put('cri/conf.d/01-registries.part', { contents: registriesPart(spec), mode: 0o600, selinux_label: '' })
    for (const { path, contents, mode } of hostsFiles(spec)) files.put(`cri/conf.d/hosts/${path}`, { contents, mode, selinux_label: '' })
  },
})
