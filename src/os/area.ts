import type { Controller } from '../cosi/controller.ts'
import type { ResourceType } from '../cosi/resource.ts'
import type { Method } from '../rpc/server/method.ts'
import type { ServiceDefinition } from '../supervise/definition.ts'
import type { Kernel } from './kernel.ts'

/** One subject of the operating system: what it knows, does, runs and answers. `M` is what its parts are handed. */
export interface Area<M = Machine> {
  readonly name: string
  readonly resources: readonly ResourceType<any>[]
  controllers?(machine: M): Controller[]
  services?(machine: M): ServiceDefinition[]
  methods?(machine: M): Method[]
}

/** What init hands to every area. */
export interface Machine {
  readonly kernel: Kernel
  readonly store: import('../cosi/store.ts').Store
  readonly log: import('../cosi/log.ts').Logger
  readonly supervisor: import('../supervise/supervisor.ts').Supervisor
  /** Name and tag of this build. */
  readonly version: { name: string; tag: string; sha: string; built: string }
}
