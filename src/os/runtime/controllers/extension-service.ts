import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { nearest } from '../../../document/nearest.ts'
import { isDown } from '../../../supervise/state.ts'
import type { Machine } from '../../area.ts'
import { declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { ExtensionServiceConfig as ExtensionServiceDocument } from '../documents/extension-service.ts'
import { configuredFile, configuredFolder } from '../extensions/configured-files.ts'
import { extensionServiceId } from '../extensions/load.ts'
import type { ServiceStarts } from '../extensions/starts.ts'
import { Diagnostic } from '../resources/diagnostic.ts'
import { ExtensionServiceConfig, ExtensionServiceConfigStatus } from '../resources/extension-service-config.ts'

/** The files and variables of services of extensions, from the configuration. */
export const configExtensionServices: Controller = defineController({
  name: 'runtime.ExtensionServiceConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { services: exclusive(ExtensionServiceConfig) },
  reconcile({ config, services }) {
    for (const { name, configFiles = [], environment = [] } of findAll(declared(config.get('v1alpha1')), ExtensionServiceDocument)) {
      if (name === undefined) continue
      const files = configFiles.map(({ content = '', mountPath = '' }) => ({ content, mountPath }))
      services.put(name, { ...(files.length > 0 && { files }), ...(environment.length > 0 && { environment }) })
    }
  },
})

/** Publishes configurations of services that no extension of the image has; `present` are the names of those it has. */
export const observeExtensionServices = (present: readonly string[]): Controller =>
  defineController({
    name: 'runtime.ExtensionServiceNameController',
    effects: 'none',
    inputs: { services: weak(ExtensionServiceConfig) },
    outputs: { diagnostics: shared(Diagnostic) },
    reconcile({ services, diagnostics }) {
      for (const { metadata } of services.list()) {
        const { id: name } = metadata
        if (present.includes(name)) continue
        const similar = nearest(name, present)
        const remedy = similar
          ? `rename it to "${similar}"`
          : 'remove it, or upgrade to an image with the extension that brings this service'
        diagnostics.put(`extension-service-${name}`, {
          message: `ExtensionServiceConfig "${name}" has no effect, as this image has no extension service of that name: ${remedy}`,
          details: present.length > 0 ? [`extension services of this image: ${present.join(', ')}`] : [],
        })
      }
    },
  })

/** What is used of the machine. */
interface ServiceMachine {
  readonly kernel: { readonly files: Pick<Kernel['files'], 'exists' | 'list' | 'mkdirAll' | 'remove' | 'writeAtomic'> }
  readonly supervisor: Pick<Machine['supervisor'], 'get' | 'restart'>
}

/** Writes the files, and has services that run with other ones start again. */
export const applyExtensionServices = ({ kernel: { files }, supervisor }: ServiceMachine, starts: ServiceStarts): Controller =>
  defineController({
    name: 'runtime.ExtensionServiceConfigFilesController',
    inputs: { services: weak(ExtensionServiceConfig) },
    outputs: { statuses: exclusive(ExtensionServiceConfigStatus) },
    async reconcile({ services, statuses, log }) {
      const configured = services.list()
      const names = new Set(configured.map(({ metadata }) => metadata.id))
      if (files.exists(configuredFolder))
        for (const name of files.list(configuredFolder)) if (!names.has(name)) await files.remove(`${configuredFolder}/${name}`)
      for (const { metadata, spec } of configured) {
        const { id: name, version } = metadata
        const folder = `${configuredFolder}/${name}`
        files.mkdirAll(folder, { mode: 0o700 })
        const wanted = new Map((spec.files ?? []).map(({ content, mountPath }) => [configuredFile(name, mountPath), content]))
        for (const file of files.list(folder)) if (!wanted.has(`${folder}/${file}`)) await files.remove(`${folder}/${file}`)
        for (const [path, content] of wanted) await files.writeAtomic(path, content, { mode: 0o644 })
        statuses.put(name, { specVersion: `${version}` })
      }
      for (const name of starts.outdated((each) => configured.find(({ metadata }) => metadata.id === each)?.metadata.version)) {
        const id = extensionServiceId(name)
        const state = supervisor.get(id)?.state
        if (state === undefined || isDown(state)) continue
        log.info('service restarts with its new configuration', { service: id })
        await supervisor.restart(id)
      }
    },
  })
