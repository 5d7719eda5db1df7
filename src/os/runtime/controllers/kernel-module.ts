import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { moduleName, moduleOrder, parseModulesDep } from '../../../wire/modules-dep.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { KernelModuleSpec } from '../resources/kernel-module-spec.ts'

/** Bytes of modules.dep and modules.builtin that are read at most. */
const limit = 4 << 20

/** Modules by the operator's wish: `machine.kernel.modules`. */
export const configKernelModules: Controller = defineController({
  name: 'runtime.KernelModuleConfigController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { specs: shared(KernelModuleSpec) },
  reconcile({ config, specs }) {
    for (const { name, parameters } of declared(config.get('v1alpha1'))?.machine.kernel?.modules ?? [])
      if (name) specs.put(name, { string: name, parameters: parameters ?? [] })
  },
})

/** Loads modules with all they need. What is loaded stays: the kernel may be using it. */
export const applyKernelModules = ({ files, modules, uts }: Pick<Kernel, 'files' | 'modules' | 'uts'>): Controller =>
  defineController({
    name: 'runtime.KernelModuleSpecController',
    inputs: { specs: weak(KernelModuleSpec) },
    outputs: {},
    reconcile({ specs, log }) {
      const wanted = specs.list().map(({ spec }) => spec)
      if (wanted.length === 0) return
      const folder = `/usr/lib/modules/${uts.uname().release}`
      const dependencies = parseModulesDep(files.readText(`${folder}/modules.dep`, { limit }))
      const builtin = new Set(files.readText(`${folder}/modules.builtin`, { limit }).split('\n').filter(Boolean).map(moduleName))
      const failures: unknown[] = []
      for (const { string: name, parameters } of wanted) {
        if (builtin.has(name.replaceAll('-', '_'))) continue
        try {
          const paths = moduleOrder(dependencies, [name])
          paths.forEach((path, at) => {
            const loaded = modules.loadModule(`${folder}/${path}`, at === paths.length - 1 ? parameters : [])
            if (loaded) log.info('kernel module loaded', { module: moduleName(path) })
          })
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  })
