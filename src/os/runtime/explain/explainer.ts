/**
 * Walks from a resource backwards to what keeps it from being there or being well: a resource that is missing is asked of
 * the controllers that make it, a controller of what its last round asked for in vain and of its errors, a service of the
 * conditions it waits for and of how it ended. Everything is read from memory, so it works on a machine that is not ready.
 */
import type { Controller, Input, Output } from '../../../cosi/controller.ts'
import type { Resource, ResourceType } from '../../../cosi/resource.ts'
import type { ControllerState, Runtime } from '../../../cosi/runtime.ts'
import type { Store } from '../../../cosi/store.ts'
import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import type { ServiceSnapshot } from '../../../supervise/snapshot.ts'
import { configOf } from '../../config/parse.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import type { Kernel } from '../../kernel.ts'
import { Service } from '../resources/service.ts'
import type { Cause } from './cause.ts'
import { serviceTrouble } from './service-trouble.ts'
import { complaintsOf, type Target } from './wellness.ts'

/** What is looked at. */
export interface Scene {
  readonly store: Store
  readonly world: Pick<Kernel, 'mode'>
  readonly runtime: Pick<Runtime, 'clock' | 'controllers'>
  readonly supervisor: { get(id: string): ServiceSnapshot | undefined; list(): ServiceSnapshot[] }
  /** How a service is described, if there is such a one. */
  definition(id: string): ServiceDefinition | undefined
}

/** A round that takes longer than this is told of, in milliseconds. */
const longRound = 5_000

/** The controller that starts a service which the boot sequence leaves to it. */
const starters: Readonly<Record<string, string>> = { kubelet: 'k8s.KubeletServiceController' }

/** One explanation in the making. */
export class Explainer {
  readonly causes = new Map<string, Cause>()
  readonly #seen = new Set<string>()

  constructor(readonly scene: Scene) {}

  /** Looks at a resource; the keys of the causes that explain it, none when it is there and well. */
  resource({ type, namespace = type.namespace, id }: Target, depth = 0): string[] {
    if (type.type === Service.type && id !== '') return this.service(id, depth)
    const subject = nameOf(type, namespace, id)
    if (this.#seen.has(subject)) return this.causes.has(subject) ? [subject] : []
    this.#seen.add(subject)
    const { store } = this.scene
    const found = id === '' ? store.list(type, { namespace })[0] : store.get(type, id, { namespace })
    if (!found) return this.#absent(type, namespace, id, subject, depth)
    if (found.metadata.phase !== 'running') {
      const held = found.metadata.finalizers.join(', ') || 'nobody, its owner will remove it'
      return this.#note({ kind: 'absent', subject, sentence: `it is being torn down, held by ${held}`, depth, because: [] })
    }
    return this.#present(found, type, subject, depth)
  }

  /** Looks at a service. */
  service(id: string, depth = 0): string[] {
    const subject = `service ${id}`
    if (this.#seen.has(subject)) return this.causes.has(subject) ? [subject] : []
    this.#seen.add(subject)
    const snapshot = this.scene.supervisor.get(id)
    if (!snapshot) return this.#unloaded(id, subject, depth)
    const trouble = serviceTrouble(snapshot, this.scene.definition(id)?.health !== undefined)
    if (!trouble) return []
    const { hangsOnOthers = false, ...told } = trouble
    const because = hangsOnOthers ? this.#conditions(id, depth) : []
    return this.#note({ kind: 'service', subject, depth, because, ...told })
  }

  /** Looks at a controller; nothing when its last round went well and it found all it asked for. */
  controller(name: string, depth = 0): string[] {
    const entry = this.scene.runtime.controllers().find(({ controller }) => controller.name === name)
    return entry ? this.#maker(entry, depth) : []
  }

  /** Leaves only what can be reached from these. */
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
   * Of what may be behind something, those ways that end at something that fails; when none does, all of them. Controllers
   * also ask for what need not be there, and that is no cause while there is a better one.
   */
  #loudest(keys: readonly string[]): string[] {
    const all = [...new Set(keys)]
    const loud = all.filter((key) => this.#isLoud(key, new Set()))
    return loud.length > 0 ? loud : all
  }

  #isLoud(key: string, seen: Set<string>): boolean {
    if (seen.has(key)) return false
    seen.add(key)
    const cause = this.causes.get(key)
    if (!cause) return false
    if (cause.because.length === 0) return !cause.quiet || cause.error !== undefined
    return cause.kind === 'failing' || cause.because.some((next) => this.#isLoud(next, seen))
  }

  #present(found: Resource, type: ResourceType, subject: string, depth: number): string[] {
    const complaints = complaintsOf(found)
    if (complaints.length === 0) return []
    const { metadata } = found
    // What a resource hangs on by its own word says more than how it is made.
    const error = [...new Set(complaints.flatMap((complaint) => complaint.error ?? []))].join('; ') || undefined
    const hangsOn = complaints.flatMap((complaint) => complaint.behind.flatMap((target) => this.resource(target, depth + 1)))
    // One that gives a reason of its own hangs only on what fails.
    const behind = error ? hangsOn.filter((key) => this.#isLoud(key, new Set())) : hangsOn
    const made = behind.length > 0 ? [] : this.#makers(type, metadata.namespace).flatMap((maker) => this.#maker(maker, depth + 1))
    const [first] = complaints
    return this.#note({
      kind: 'unwell',
      subject,
      sentence: complaints.map(({ sentence }) => sentence).join('; '),
      error,
      times: first?.times,
      since: metadata.updated,
      depth,
      because: this.#loudest([...behind, ...made]),
    })
  }

  #absent(type: ResourceType, namespace: string, id: string, subject: string, depth: number): string[] {
    const makers = this.#makers(type, namespace)
    const there = id === '' ? 'there is none' : 'it is not there'
    if (makers.length === 0)
      return this.#note({ kind: 'absent', subject, sentence: `${there}, and no controller here makes it`, depth, because: [], quiet: true })
    const because = this.#loudest(makers.flatMap((maker) => this.#maker(maker, depth + 1)))
    const names = makers.map(({ controller }) => controller.name).join(' or ')
    if (because.length > 0) return this.#note({ kind: 'absent', subject, sentence: `${there}, ${names} makes it`, depth, because })
    return this.#note({ kind: 'absent', subject, ...this.#unmade(makers, there, names), depth, because: [], quiet: true })
  }

  /** Nobody is in trouble and yet it was not made: what that leaves. */
  #unmade(makers: readonly Entry[], there: string, names: string): { sentence: string; error?: string } {
    const { store, world } = this.scene
    const busy = makers.find(({ state }) => state.rounds === 0 || state.due)
    if (busy) return { sentence: `${there}, ${busy.controller.name} has not looked yet` }
    const reads = makers.some(({ controller }) => inputsOf(controller).some(({ type }) => type.type === MachineConfig.type))
    const config = reads ? configOf(store.get(MachineConfig, 'v1alpha1')) : undefined
    if (!config) return { sentence: `${there}: ${names} found all it asked for, and none follows from it` }
    const { errors } = config.validate(world.mode)
    const error = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
    return {
      sentence: `${there}: ${names} makes it of the machine configuration, which says nothing it could be made of`,
      ...(error ? { error } : {}),
    }
  }

  #maker({ controller, state }: Entry, depth: number): string[] {
    const subject = `controller ${controller.name}`
    if (this.#seen.has(subject)) {
      const known = this.causes.get(subject)
      return known ? [subject] : []
    }
    this.#seen.add(subject)
    const waits = [...this.#vain(controller, state, depth + 1), ...this.#unwellInputs(controller, depth + 1)]
    const behind = this.#loudest(waits)
    // One that fails by its own word has found what it cannot do without.
    const loud = behind.filter((key) => this.#isLoud(key, new Set()))
    const own = this.#ownTroubles(subject, state, depth, loud)
    return own.length > 0 ? own : behind
  }

  #ownTroubles(subject: string, { lastError, troubles, roundSince }: ControllerState, depth: number, because: string[]): string[] {
    const failing = (sentence: string, rest: Partial<Cause>) => this.#note({ kind: 'failing', subject, sentence, depth, because, ...rest })
    if (lastError) return failing('its last round failed', { error: lastError.message, since: lastError.since, times: lastError.inRow })
    const [task, trouble] = [...troubles][0] ?? []
    if (trouble) return failing(`it goes on trying${named(task)}`, { error: trouble.message, since: trouble.since, times: trouble.inRow })
    if (roundSince && this.scene.runtime.clock.elapsed() - roundSince.elapsed > longRound)
      return failing('it has been at one round for long: something it asks does not answer', { since: roundSince.time })
    return []
  }

  /** What the last round asked for in vain. */
  #vain(controller: Controller, { missing }: ControllerState, depth: number): string[] {
    return missing.flatMap(({ type, namespace, id }) =>
      this.resource({ type, namespace, id: id || (onlyId(controller, type) ?? '') }, depth),
    )
  }

  /** Inputs that are there and say themselves that something is wrong. */
  #unwellInputs(controller: Controller, depth: number): string[] {
    return inputsOf(controller).flatMap(({ type, namespace, id }) => {
      if (type.type === Service.type && id !== undefined) return this.service(id, depth)
      const present = this.scene.store.list(type, { namespace }).filter(({ metadata }) => id === undefined || metadata.id === id)
      return present
        .filter((resource) => complaintsOf(resource).length > 0)
        .flatMap(({ metadata }) => this.resource({ type, namespace, id: metadata.id }, depth))
    })
  }

  /** What a service waits for: other services, and whatever its own condition looks for in vain. */
  #conditions(id: string, depth: number): string[] {
    const definition = this.scene.definition(id)
    if (!definition) return []
    const services = definition.dependsOn.flatMap((other) => this.service(other, depth + 1))
    const vain: Target[] = []
    definition.wait?.(noting(this.scene.store, vain))
    return this.#loudest([...services, ...vain.flatMap((target) => this.resource(target, depth + 1))])
  }

  #unloaded(id: string, subject: string, depth: number): string[] {
    const starter = starters[id]
    const because = starter ? this.controller(starter, depth + 1) : this.resource({ type: MachineType, id: 'machine-type' }, depth + 1)
    const who = starter ? `${starter} starts it` : 'the boot sequence starts it'
    return this.#note({ kind: 'service', subject, sentence: `it is not started yet, ${who}`, depth, because, quiet: true })
  }

  #makers(type: ResourceType, namespace: string): Entry[] {
    return this.scene.runtime
      .controllers()
      .filter(({ controller }) =>
        Object.values<Output>(controller.outputs).some((output) => output.type.type === type.type && output.namespace === namespace),
      )
  }

  #note(cause: Cause): string[] {
    this.causes.set(cause.subject, { ...cause, because: cause.because.filter((other) => other !== cause.subject) })
    return [cause.subject]
  }
}

/** What a task is called, without the digests that tell it from others of its kind. */
function named(task = ''): string {
  const words = task.split(' ').filter((word) => !/^(?=.*\d)[0-9a-z]{9,}$/.test(word))
  return words.length > 0 ? ` "${words.join(' ').slice(0, 80)}"` : ''
}

interface Entry {
  readonly controller: Controller
  readonly state: ControllerState
}

const inputsOf = ({ inputs }: Controller): Input[] => Object.values<Input>(inputs)

function onlyId(controller: Controller, type: ResourceType): string | undefined {
  return inputsOf(controller).find((input) => input.type.type === type.type)?.id
}

/** A view of the store that notes what it is asked for: what is not there, or is there and unwell. */
function noting(store: Store, vain: Target[]): StoreView {
  return {
    get: (type, id, scope) => {
      const found = store.get(type, id, scope)
      if (!found || complaintsOf(found).length > 0) vain.push({ type, namespace: scope?.namespace, id })
      return found
    },
    list: (type, query) => {
      const found = store.list(type, query)
      if (found.length === 0) vain.push({ type, namespace: query?.namespace, id: '' })
      return found
    },
  }
}

/** A resource as users name it. */
export function nameOf(type: Pick<ResourceType, 'type' | 'namespace'>, namespace: string, id: string): string {
  const where = namespace === type.namespace ? '' : ` in namespace "${namespace}"`
  return `${type.type}${id ? `/${id}` : ''}${where}`
}
