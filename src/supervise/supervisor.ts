/** All services of a node: loaded, started in dependency order, watched, and stopped in reverse order. */

import { type Clock, systemClock } from '../cosi/clock.ts'
import { type Logger, silent } from '../cosi/log.ts'
import type { Store } from '../cosi/store.ts'
import type { StatusName } from '../rpc/status.ts'
import { apiStatus } from '../wire/api-status.ts'
import type { OperatorAction, ServiceDefinition } from './definition.ts'
import { Logs } from './logs.ts'
import { Service } from './service.ts'
import type { ServiceEvent, ServiceSnapshot } from './snapshot.ts'
import { isDown } from './state.ts'

/** Why a request about a service was refused. */
export class SupervisorError extends Error {
  override name = 'SupervisorError'
  readonly reason: 'not-found' | 'refused'
  constructor(reason: 'not-found' | 'refused', message: string) {
    super(message)
    this.reason = reason
  }

  get [apiStatus](): StatusName {
    return this.reason === 'not-found' ? 'NotFound' : 'FailedPrecondition'
  }
}

/** Starts, watches and stops services. */
export class Supervisor {
  readonly logs: Logs
  readonly #store: Store
  readonly #clock: Clock
  readonly #oomFloor: number
  readonly #log: Logger
  readonly #services = new Map<string, Service>()
  readonly #listeners = new Set<(event: ServiceEvent) => void>()
  #closing = false

  /** `oomFloor` is the lowest OOM score init may set: without CAP_SYS_RESOURCE, its own. */
  constructor(options: { store: Store; clock?: Clock; logs?: Logs; log?: Logger; oomFloor?: number }) {
    const { store, clock = systemClock, logs = new Logs(), log = silent, oomFloor = -1000 } = options
    this.#log = log
    this.#store = store
    this.#oomFloor = oomFloor
    this.#clock = clock
    this.logs = logs
  }

  /** Adds services; a service that exists takes the new definition at its next start. */
  load(...definitions: readonly ServiceDefinition[]): void {
    for (const definition of definitions) {
      const known = this.#services.get(definition.id)
      if (known) known.redefine(definition)
      else this.#services.set(definition.id, this.#create(definition))
    }
  }

  /** Starts services; each runs once its dependencies and conditions are met. */
  start(...ids: readonly string[]): void {
    if (this.#closing) throw new SupervisorError('refused', 'start service: the node is stopping its services')
    for (const service of ids.map((id) => this.#find(id))) service.start()
  }

  /** Stops services and waits until they are down. Services that depend on them are not stopped. */
  async stop(...ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#find(id)).map((service) => service.stop()))
  }

  /** Stops a service and starts it again. */
  async restart(id: string): Promise<void> {
    await this.stop(id)
    this.start(id)
  }

  /** Performs an operator's action, if the service allows it, and returns the message for the reply. */
  async operate(id: string, action: OperatorAction): Promise<string> {
    const service = this.#find(id)
    if (!service.definition.operator?.includes(action))
      throw new SupervisorError('refused', `service "${id}" does not support ${action} operation via API`)
    if (action === 'start') this.start(id)
    else if (action === 'stop') await this.stop(id)
    else await this.restart(id)
    return `Service "${id}" ${action === 'start' ? 'started' : action === 'stop' ? 'stopped' : 'restarted'}`
  }

  /** Stops a service and removes it. */
  async unload(id: string): Promise<void> {
    await this.stop(id)
    this.#services.delete(id)
  }

  /** Stops all services, each after its dependents, and starts none any more. With `keep`, those and their dependencies keep running. */
  async stopAll({ keep = [] }: { keep?: readonly string[] } = {}): Promise<void> {
    if (keep.length === 0) this.#closing = true
    const kept = this.#needed(keep)
    const going = [...this.#services.values()].filter(({ definition }) => !kept.has(definition.id))
    const ends = new Map<string, Promise<void>>()
    const end = (service: Service): Promise<void> => {
      const id = service.definition.id
      let promise = ends.get(id)
      if (!promise) {
        const users = going.filter(({ definition }) => uses(definition).includes(id))
        promise = Promise.all(users.map(end)).then(() => service.stop())
        ends.set(id, promise)
      }
      return promise
    }
    await Promise.all(going.map(end))
  }

  /** Every service, sorted by id. */
  list(): ServiceSnapshot[] {
    return [...this.#services.keys()].sort().map((id) => this.#find(id).snapshot())
  }

  /** One service, if it is loaded. */
  get(id: string): ServiceSnapshot | undefined {
    return this.#services.get(id)?.snapshot()
  }

  /** Whether a service is running, and healthy if it has a health check. */
  isUp(id: string): boolean {
    return this.#services.get(id)?.isUp ?? false
  }

  /** Calls back for every event of every service. Returns the function that unsubscribes. */
  subscribe(listener: (event: ServiceEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves once the service is up (running, and healthy if it has a health check) or down; rejects with the signal's reason. */
  until(id: string, what: 'up' | 'down', signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (act: () => void) => {
        unsubscribe()
        signal?.removeEventListener('abort', aborted)
        act()
      }
      const aborted = () => finish(() => reject(signal?.reason))
      const check = () => {
        const service = this.#services.get(id)
        if (what === 'up' ? service?.isUp : !service || isDown(service.state)) finish(resolve)
      }
      const unsubscribe = this.subscribe(check)
      signal?.addEventListener('abort', aborted)
      if (signal?.aborted) aborted()
      else check()
    })
  }

  #create(definition: ServiceDefinition): Service {
    return new Service(definition, {
      store: this.#store,
      clock: this.#clock,
      log: this.#log,
      output: this.logs.open(definition.id),
      oomFloor: this.#oomFloor,
      notUp: (ids) => ids.filter((id) => !this.#services.get(id)?.isUp),
      onEvent: (event) => this.#emit(event),
    })
  }

  #emit(event: ServiceEvent): void {
    for (const listener of [...this.#listeners])
      try {
        listener(event)
      } catch (error) {
        // A failing listener must not affect the service.
        this.#log.error('service event listener failed', { service: event.id, error })
      }
    for (const service of this.#services.values()) if (service.definition.dependsOn.includes(event.id)) service.wake()
  }

  #find(id: string): Service {
    const service = this.#services.get(id)
    if (!service) throw new SupervisorError('not-found', `service "${id}" is not registered`)
    return service
  }

  /** The services in `ids` and everything they use. */
  #needed(ids: readonly string[]): Set<string> {
    const found = new Set<string>()
    const add = (id: string) => {
      if (found.has(id)) return
      found.add(id)
      const service = this.#services.get(id)
      if (service) for (const used of uses(service.definition)) add(used)
    }
    for (const id of ids) add(id)
    return found
  }
}

/** What must keep running until a service has stopped. */
const uses = ({ dependsOn, outlivedBy = [] }: ServiceDefinition): readonly string[] => [...dependsOn, ...outlivedBy]
