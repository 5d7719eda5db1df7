/**
 * Walks from a resource back to what keeps it from existing or being healthy: from a missing resource to the controllers that
 * make it, from a controller to the missing inputs and the errors of its last round, from a service to its conditions and its
 * exits. Everything is read from memory, so it works on a machine that is not ready.
 */
import type { Controller, Input, Output } from '../../cosi/controller.ts'
import type { ControllerState, Trouble } from '../../cosi/controller-state.ts'
import type { Resource, ResourceType } from '../../cosi/resource.ts'
import type { Runtime } from '../../cosi/runtime.ts'
import type { Store } from '../../cosi/store.ts'
import type { ServiceDefinition, StoreView } from '../../supervise/definition.ts'
import type { ServiceSnapshot } from '../../supervise/snapshot.ts'
import { configOf } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { MachineType } from '../config/resources/machine-type.ts'
import type { Kernel } from '../kernel.ts'
import { Service } from '../runtime/resources/service.ts'
import { type About, type Cause, subjectOf } from './cause.ts'
import { serviceTrouble } from './service-trouble.ts'
import { complaintsOf, disabledBy, type Target } from './wellness.ts'

/** The state that is explained. */
export interface Scene {
  readonly store: Store
  readonly world: Pick<Kernel, 'mode'>
  readonly runtime: Pick<Runtime, 'clock' | 'controllers'>
  readonly supervisor: { get(id: string): ServiceSnapshot | undefined; list(): ServiceSnapshot[] }
  /** The definition of a service, if there is one. */
  definition(id: string): ServiceDefinition | undefined
}

/** A longer round is reported, in milliseconds. */
const longRound = 5_000

/** One explanation under construction. */
export class Explainer {
  readonly causes = new Map<string, Cause>()
  readonly #seen = new Set<string>()

  constructor(readonly scene: Scene) {}

  /** Examines a resource; returns the keys of the causes that explain it, none when it exists and is healthy. */
  resource({ type, namespace = type.namespace, id }: Target, depth = 0): string[] {
    if (type.type === Service.type && id !== '') return this.service(id, depth)
    const subject = nameOf(type, namespace, id)
    if (this.#seen.has(subject)) return this.causes.has(subject) ? [subject] : []
    this.#seen.add(subject)
    const { store } = this.scene
    const one: Examined = { subject, about: { kind: 'resource', type: type.type, id }, contacts: this.#contactsOf(type, namespace) }
    const found = id === '' ? store.list(type, { namespace })[0] : store.get(type, id, { namespace })
    if (!found) return this.#absent(type, namespace, id, one, depth)
    if (found.metadata.phase !== 'running') {
      const held = found.metadata.finalizers.join(', ') || 'nobody, its owner will remove it'
      return this.#note({ kind: 'absent', ...one, sentence: `it is being torn down, held by ${held}`, depth, because: [] })
    }
    return this.#present(found, type, one, depth)
  }

  /** Examines a service. */
  service(id: string, depth = 0): string[] {
    const subject = subjectOf('service', id)
    if (this.#seen.has(subject)) return this.causes.has(subject) ? [subject] : []
    this.#seen.add(subject)
    const snapshot = this.scene.supervisor.get(id)
    const definition = this.scene.definition(id)
    const one: Examined = { subject, about: { kind: 'service', name: id }, contacts: contactsOf(definition) }
    if (!snapshot) return this.#unloaded(id, one, depth)
    const trouble = serviceTrouble(snapshot, definition?.health !== undefined)
    if (!trouble) return []
    const { dependsOnOthers = false, ...cause } = trouble
    const because = dependsOnOthers ? this.#conditions(id, depth) : []
    return this.#note({ kind: 'service', ...one, depth, because, ...cause })
  }

  /** Examines a controller; nothing when its last round succeeded and found all inputs. */
  controller(name: string, depth = 0): string[] {
    const entry = this.scene.runtime.controllers().find(({ controller }) => controller.name === name)
    return entry ? this.#maker(entry, depth) : []
  }

  /** Removes everything that cannot be reached from these. */
  keep(roots: readonly string[]): void {
    const reached = new Set<string>()
    const reach = (key: string) => {
      if (reached.has(key)) return
      reached.add(key)
      for (const next of this.causes.get(key)?.because ?? []) reach(next)
    }
    for (const root of roots) reach(root)
    for (const key of [...this.causes.keys()]) if (!reached.has(key)) this.causes.delete(key)
  }

  /**
   * The possible causes that lead to a failure; when none does, all of them. Controllers also query optional inputs, which are no
   * cause while there is a better one.
   */
  #mostRelevant(keys: readonly string[]): string[] {
    const all = [...new Set(keys)]
    const failing = all.filter((key) => this.#isFailing(key, new Set()))
    return failing.length > 0 ? failing : all
  }

  #isFailing(key: string, seen: Set<string>): boolean {
    if (seen.has(key)) return false
    seen.add(key)
    const cause = this.causes.get(key)
    if (!cause) return false
    if (cause.because.length === 0) return !cause.quiet || cause.error !== undefined
    return cause.kind === 'failing' || cause.because.some((next) => this.#isFailing(next, seen))
  }

  #present(found: Resource, type: ResourceType, one: Examined, depth: number): string[] {
    const complaints = complaintsOf(found, this.scene.store)
    if (complaints.length === 0) return []
    const { metadata } = found
    // The dependencies that a resource names itself say more than its controllers.
    const error = [...new Set(complaints.flatMap((complaint) => complaint.error ?? []))].join('; ') || undefined
    const dependencies = complaints.flatMap((complaint) => complaint.behind.flatMap((target) => this.resource(target, depth + 1)))
    // If it has a reason of its own, only failing dependencies count.
    const behind = error ? dependencies.filter((key) => this.#isFailing(key, new Set())) : dependencies
    const made = behind.length > 0 ? [] : this.#makers(type, metadata.namespace).flatMap((maker) => this.#maker(maker, depth + 1))
    const [first] = complaints
    return this.#note({
      kind: 'unhealthy',
      ...one,
      sentence: complaints.map(({ sentence }) => sentence).join('; '),
      error,
      // What a resource reports as its error comes from the kubelet.
      output: error,
      times: first?.times,
      since: metadata.updated,
      depth,
      because: this.#mostRelevant([...behind, ...made]),
    })
  }

  #absent(type: ResourceType, namespace: string, id: string, one: Examined, depth: number): string[] {
    const makers = this.#makers(type, namespace)
    const there = id === '' ? 'there is none' : 'it is not there'
    const key = disabledBy({ type, id }, this.scene.store)
    if (key) return this.#note({ kind: 'absent', ...one, sentence: `${there}, because ${key} is set`, depth, because: [] })
    if (makers.length === 0)
      return this.#note({ kind: 'absent', ...one, sentence: `${there}, and no controller here makes it`, depth, because: [], quiet: true })
    const because = this.#mostRelevant(makers.flatMap((maker) => this.#maker(maker, depth + 1)))
    const names = makers.map(({ controller }) => controller.name).join(' or ')
    if (because.length > 0) return this.#note({ kind: 'absent', ...one, sentence: `${there}, ${names} makes it`, depth, because })
    return this.#note({ kind: 'absent', ...one, ...this.#unmade(makers, there, names), depth, because: [], quiet: true })
  }

  /** The explanation of a missing resource whose controllers have no trouble. */
  #unmade(makers: readonly Entry[], there: string, names: string): { sentence: string; error?: string } {
    const { store, world } = this.scene
    const busy = makers.find(({ state }) => state.rounds === 0 || state.due)
    if (busy) return { sentence: `${there}, ${busy.controller.name} has not run yet` }
    const reads = makers.some(({ controller }) => inputsOf(controller).some(({ type }) => type.type === MachineConfig.type))
    const config = reads ? configOf(store.get(MachineConfig, 'v1alpha1')) : undefined
    if (!config) return { sentence: `${there}: ${names} found all its inputs, and they do not produce it` }
    const { errors } = config.validate(world.mode)
    const error = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
    return {
      sentence: `${there}: ${names} makes it from the machine configuration, which does not declare it`,
      ...(error && { error }),
    }
  }

  #maker({ controller, state }: Entry, depth: number): string[] {
    const subject = subjectOf('controller', controller.name)
    if (this.#seen.has(subject)) {
      const known = this.causes.get(subject)
      return known ? [subject] : []
    }
    this.#seen.add(subject)
    const waits = [...this.#missingInputs(controller, state, depth + 1), ...this.#unhealthyInputs(controller, depth + 1)]
    const behind = this.#mostRelevant(waits)
    // If the controller fails by itself, only failing inputs count.
    const failing = behind.filter((key) => this.#isFailing(key, new Set()))
    const own = this.#ownTroubles(controller, state, depth, failing)
    return own.length > 0 ? own : behind
  }

  #ownTroubles(controller: Controller, { lastError, troubles, roundSince }: ControllerState, depth: number, because: string[]): string[] {
    const { name } = controller
    const one: Examined = { subject: subjectOf('controller', name), about: { kind: 'controller', name }, contacts: contactsOf(controller) }
    const failing = (sentence: string, rest: Partial<Cause>) => this.#note({ kind: 'failing', ...one, sentence, depth, because, ...rest })
    const recurring = ({ message, code, since, inRow }: Trouble) => ({ error: message, code, since, times: inRow })
    if (lastError) return failing('its last round failed', recurring(lastError))
    const [trouble] = troubles.values()
    if (trouble) return failing(`it keeps retrying${trouble.task ? ` "${trouble.task.slice(0, 80)}"` : ''}`, recurring(trouble))
    if (roundSince && this.scene.runtime.clock.elapsed() - roundSince.elapsed > longRound)
      return failing('its round takes too long: something it calls does not answer', { since: roundSince.time })
    return []
  }

  /** The missing inputs of the last round. */
  #missingInputs(controller: Controller, { missing }: ControllerState, depth: number): string[] {
    return missing.flatMap(({ type, namespace, id }) =>
      this.resource({ type, namespace, id: id || (onlyId(controller, type) ?? '') }, depth),
    )
  }

  /** Existing inputs that report a problem themselves. */
  #unhealthyInputs(controller: Controller, depth: number): string[] {
    return inputsOf(controller).flatMap(({ type, namespace, id }) => {
      if (type.type === Service.type && id !== undefined) return this.service(id, depth)
      const present = this.scene.store.list(type, { namespace }).filter(({ metadata }) => id === undefined || metadata.id === id)
      return present
        .filter((resource) => complaintsOf(resource, this.scene.store).length > 0)
        .flatMap(({ metadata }) => this.resource({ type, namespace, id: metadata.id }, depth))
    })
  }

  /** What a service waits for: other services, and the missing resources of its own condition. */
  #conditions(id: string, depth: number): string[] {
    const definition = this.scene.definition(id)
    if (!definition) return []
    const services = definition.dependsOn.flatMap((other) => this.service(other, depth + 1))
    const vain: Target[] = []
    definition.wait?.(noting(this.scene.store, vain))
    return this.#mostRelevant([...services, ...vain.flatMap((target) => this.resource(target, depth + 1))])
  }

  #unloaded(id: string, one: Examined, depth: number): string[] {
    // The boot sequence starts what no controller does.
    const starter = this.scene.runtime.controllers().find(({ controller }) => controller.starts?.includes(id))
    const because = starter ? this.#maker(starter, depth + 1) : this.resource({ type: MachineType, id: 'machine-type' }, depth + 1)
    const who = starter ? `${starter.controller.name} starts it` : 'the boot sequence starts it'
    return this.#note({ kind: 'service', ...one, sentence: `it is not started yet, ${who}`, depth, because, quiet: true })
  }

  #makers(type: ResourceType, namespace: string): Entry[] {
    return this.scene.runtime
      .controllers()
      .filter(({ controller }) =>
        Object.values<Output>(controller.outputs).some((output) => output.type.type === type.type && output.namespace === namespace),
      )
  }

  /** The outside parties that the makers of a resource connect to. */
  #contactsOf(type: ResourceType, namespace: string): string[] {
    return this.#makers(type, namespace).flatMap(({ controller }) => contactsOf(controller))
  }

  #note(cause: Cause): string[] {
    this.causes.set(cause.subject, { ...cause, because: cause.because.filter((other) => other !== cause.subject) })
    return [cause.subject]
  }
}

/** The identity of what is examined. */
type Examined = Pick<Cause, 'subject'> & { readonly about: About; readonly contacts: readonly string[] }

const contactsOf = (of: { readonly contacts?: string } | undefined): string[] => (of?.contacts === undefined ? [] : [of.contacts])

interface Entry {
  readonly controller: Controller
  readonly state: ControllerState
}

const inputsOf = ({ inputs }: Controller): Input[] => Object.values<Input>(inputs)

function onlyId(controller: Controller, type: ResourceType): string | undefined {
  return inputsOf(controller).find((input) => input.type.type === type.type)?.id
}

/** A view of the store that records the missing and unhealthy resources that were queried. */
function noting(store: Store, vain: Target[]): StoreView {
  return {
    get: (type, id, scope) => {
      const found = store.get(type, id, scope)
      if (!found || complaintsOf(found, store).length > 0) vain.push({ type, namespace: scope?.namespace, id })
      return found
    },
    list: (type, query) => {
      const found = store.list(type, query)
      if (found.length === 0) vain.push({ type, namespace: query?.namespace, id: '' })
      return found
    },
  }
}

/** The user-visible name of a resource. */
export function nameOf(type: Pick<ResourceType, 'type' | 'namespace'>, namespace: string, id: string): string {
  const where = namespace === type.namespace ? '' : ` in namespace "${namespace}"`
  return `${type.type}${id ? `/${id}` : ''}${where}`
}
