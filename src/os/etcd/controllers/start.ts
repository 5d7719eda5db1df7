import { type Controller, defineController, type Round, shared, weak } from '../../../cosi/controller.ts'
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import type { ServiceSnapshot } from '../../../supervise/snapshot.ts'
import { isDown } from '../../../supervise/state.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { type AwaitedImage, awaitedImage, failureLimit, type PullImage, pullRepeatedly, settingsAnnotation } from '../../k8s/public.ts'
import { ComponentFallback, ComponentStatus, ComponentTrial } from '../../k8s/resources/component.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { Service } from '../../runtime/resources/service.ts'
import { etcdAddresses } from '../addresses.ts'
import { EtcdConfig } from '../resources/etcd-config.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'
import { EtcdStart } from '../resources/etcd-start.ts'

/** Milliseconds in which etcd must answer after its settings changed: reading gigabytes of data takes a while. */
export const startLimit = 120_000

/** Milliseconds between queries whether the other members wait only for this one. */
const retryInterval = 10_000

type Status = SpecOf<typeof ComponentStatus>
type Start = SpecOf<typeof EtcdStart>

/** What the controller uses of the machine. */
interface Dependencies {
  readonly supervisor: {
    get(id: string): Pick<ServiceSnapshot, 'state' | 'health'> | undefined
    restart(id: string): Promise<void>
  }
  readonly pull: PullImage
  /** Whether the members would have a majority if the one at these addresses answered. */
  othersSuffice(own: readonly string[]): Promise<boolean>
}

/** The inputs of one round. */
interface Facts {
  readonly start: Resource<Start> | undefined
  readonly config: Resource<SpecOf<typeof EtcdConfig>> | undefined
  readonly spec: Resource<SpecOf<typeof EtcdSpec>> | undefined
  /** Addresses of the node from which etcd's are chosen. */
  readonly routed: readonly string[]
  /** Digest of the settings that are on trial. */
  readonly onTrial: string | undefined
  /** Whether the process that was started last answers. */
  readonly ready: boolean
}

type Tools = Pick<Round, 'clock' | 'wakeIn' | 'background'>

/**
 * Reports with which settings etcd was started and whether it runs with them, for their trial. Settings fail when the process
 * ends, when it does not answer in time although only this member is missing, when the image cannot be pulled (which is tried
 * while the running etcd is left alone), and when the node lacks the addresses. Restarts etcd when its settings were rejected;
 * its data is left alone.
 */
export function observeEtcdStart(dependencies: Dependencies): Controller {
  const observer = new Observer(dependencies)
  return defineController({
    name: 'etcd.StartController',
    inputs: {
      starts: weak(EtcdStart, { id: 'etcd' }),
      services: weak(Service, { id: 'etcd' }),
      config: weak(EtcdConfig, { id: 'etcd' }),
      specs: weak(EtcdSpec, { id: 'etcd' }),
      addresses: weak(NodeAddress, { id: 'routed-no-k8s' }),
      trials: weak(ComponentTrial, { id: 'etcd' }),
      fallbacks: weak(ComponentFallback, { id: 'etcd' }),
    },
    outputs: { status: shared(ComponentStatus) },
    async reconcile({ starts, services, config, specs, addresses, trials, fallbacks, status, log, ...tools }) {
      const start = starts.get('etcd')
      const facts: Facts = {
        start,
        config: config.get('etcd'),
        spec: specs.get('etcd'),
        routed: addresses.get('routed-no-k8s')?.spec.addresses ?? [],
        onTrial: trials.get('etcd')?.spec.settings,
        ready: start?.spec.stage === 'running' && (services.get('etcd')?.spec.healthy ?? false),
      }
      const seen = await observer.status(facts, tools)
      if (seen) status.put('etcd', seen)
      if (!observer.mustRestart(facts, fallbacks.get('etcd')?.spec.rejected)) return
      log.info('restarting etcd with other settings than it was started with', {
        from: start?.spec.settings,
        to: settingsOf(facts.spec),
      })
      await dependencies.supervisor.restart('etcd')
    },
  })
}

class Observer {
  readonly #dependencies: Dependencies
  readonly #unanswered = new Stopwatch()
  readonly #unaddressable = new Stopwatch()
  #awaited: AwaitedImage | undefined
  /** The settings with which it answered last, and the state of the start that was replaced last. */
  #answered = ''
  #replaced = ''

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  async status(facts: Facts, tools: Tools): Promise<Status | undefined> {
    if (facts.ready && facts.start) {
      this.#answered = facts.start.spec.settings
      this.#unanswered.reset()
    }
    return this.#addresses(facts, tools) ?? this.#image(facts, tools) ?? this.#process(facts, tools)
  }

  /** An etcd that never answered takes the newest settings. One that did keeps its own until its next start, unless they were rejected. */
  mustRestart({ start, spec }: Facts, rejected: string | undefined): boolean {
    const next = settingsOf(spec)
    if (!start || next === undefined || next === start.spec.settings) return false
    if (this.#answered === start.spec.settings && rejected !== start.spec.settings) return false
    const state = JSON.stringify(start.spec)
    if (this.#replaced === state || isDown(this.#dependencies.supervisor.get('etcd')?.state ?? 'Initialized')) return false
    this.#replaced = state
    return true
  }

  /** Settings that leave no address produce no spec, so etcd cannot be started with them. */
  #addresses({ config, spec, routed, onTrial }: Facts, tools: Tools): Status | undefined {
    if (!config || onTrial === undefined || onTrial !== settingsOf(config) || onTrial === settingsOf(spec) || routed.length === 0)
      return undefined
    const error = problemOf(() => etcdAddresses(config.spec, routed))
    if (!error || !overdue(this.#unaddressable, onTrial, tools)) return undefined
    return { settings: onTrial, ready: false, failures: failureLimit, error }
  }

  /** The image of the next start, pulled while etcd runs with another. */
  #image({ start, spec, onTrial, ready }: Facts, { background }: Tools): Status | undefined {
    const image = spec?.spec.image
    const pending = onTrial !== undefined && onTrial === settingsOf(spec) && onTrial !== start?.spec.settings
    if (!ready || !image || !pending || image === start?.spec.image) {
      this.#awaited = undefined
      return undefined
    }
    if (this.#awaited?.image !== image) this.#awaited = awaitedImage(image)
    const awaited = this.#awaited
    if (awaited.there) return undefined
    background(`image ${image}`, (signal, wake, report) => pullRepeatedly(awaited, this.#dependencies.pull, { signal, wake, report }))
    return awaited.failures > 0 ? { settings: onTrial, ready: false, failures: awaited.failures, error: awaited.error } : undefined
  }

  async #process({ start, spec, onTrial, ready }: Facts, tools: Tools): Promise<Status | undefined> {
    if (!start) return undefined
    const { settings, stage, failures, error } = start.spec
    const seen: Status = { settings, ready, failures, error }
    if (ready || settings !== onTrial || stage === 'data' || !overdue(this.#unanswered, `${stage} ${settings}`, tools)) return seen
    if (stage === 'running' && !(await this.#dependencies.othersSuffice(spec?.spec.advertisedAddresses ?? []))) {
      tools.wakeIn(retryInterval)
      return seen
    }
    return { ...seen, failures: Math.max(failures, failureLimit), error: error || slowness(start.spec, this.#dependencies.supervisor) }
  }
}

/** Whether a condition has lasted for the limit; schedules a round for when it will have. */
function overdue(stopwatch: Stopwatch, what: string, { clock, wakeIn }: Tools): boolean {
  const left = startLimit - stopwatch.of(what, clock.elapsed())
  if (left > 0) wakeIn(left)
  return left <= 0
}

const settingsOf = (resource: Resource<unknown> | undefined): string | undefined => resource?.metadata.annotations[settingsAnnotation]

function problemOf(act: () => unknown): string {
  try {
    act()
    return ''
  } catch (error) {
    return messageOf(error)
  }
}

/** Why a start without a failure is given up. */
function slowness({ stage, image }: Start, supervisor: Dependencies['supervisor']): string {
  const limit = `within ${startLimit / 1000} s`
  if (stage === 'image') return `image "${image}" was not pulled ${limit}`
  const { lastMessage = '' } = supervisor.get('etcd')?.health ?? {}
  return `it did not answer ${limit}${lastMessage && `: ${lastMessage}`}`
}

/** Measures for how long a condition has been the same. */
class Stopwatch {
  #what = ''
  #since = 0

  reset(): void {
    this.#what = ''
  }

  /** Milliseconds. */
  of(what: string, elapsed: number): number {
    if (what !== this.#what) {
      this.#what = what
      this.#since = elapsed
    }
    return elapsed - this.#since
  }
}
