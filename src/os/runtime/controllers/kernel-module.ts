import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { parseModules } from '../../../wire/proc/modules.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { lock, ModulesLocked, moduleLoader } from '../module-loader.ts'
import { DevicesStatus } from '../resources/devices-status.ts'
import { KernelModuleSpec, LoadedKernelModule } from '../resources/kernel-module.ts'

/** Desired modules from the configuration: `machine.kernel.modules`. */
export const configKernelModules: Controller = defineController({
  name: 'runtime.KernelModuleConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { specs: shared(KernelModuleSpec) },
  reconcile({ config, specs }) {
    for (const { name, parameters } of declared(config.get('v1alpha1'))?.machine.kernel?.modules ?? [])
      if (name) specs.put(name, { string: name, parameters: parameters ?? [] })
  },
})

/** Loads modules with their dependencies. Loaded modules stay: the kernel may be using them. */
export const applyKernelModules = (kernel: Pick<Kernel, 'files' | 'modules' | 'uts' | 'sysctl'>): Controller =>
  defineController({
    name: 'runtime.KernelModuleSpecController',
    inputs: { specs: weak(KernelModuleSpec) },
    outputs: {},
    reconcile({ specs, log }) {
      const wanted = specs.list().map(({ spec }) => spec)
      if (wanted.length === 0) return
      const locked = kernel.sysctl.getSysctl(lock) === '1'
      const loaded = new Set(locked ? loadedModules(kernel).map(({ name }) => name) : [])
      const load = moduleLoader(kernel)
      const failures: unknown[] = []
      for (const { string: name, parameters } of wanted) {
        try {
          if (loaded.has(name.replaceAll('-', '_'))) continue
          for (const module of load(name, parameters)) log.info('kernel module loaded', { module })
        } catch (error) {
          failures.push(locked ? new ModulesLocked(name) : error)
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  })

const interval = 30_000

/** The loaded modules: read after devices have got their drivers, and periodically. */
export const observeKernelModules = (kernel: Pick<Kernel, 'files'>): Controller =>
  defineController({
    name: 'runtime.LoadedKernelModuleController',
    effects: 'none',
    inputs: { devices: weak(DevicesStatus, { id: 'devices' }) },
    outputs: { modules: exclusive(LoadedKernelModule) },
    reconcile({ modules, wakeIn }) {
      for (const { name, ...module } of loadedModules(kernel)) modules.put(name, module)
      wakeIn(interval)
    },
  })

const loadedModules = ({ files }: Pick<Kernel, 'files'>) => parseModules(files.readText('/proc/modules', { limit: 1 << 20 }))
