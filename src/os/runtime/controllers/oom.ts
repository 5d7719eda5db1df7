import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { CelError } from '../../../document/cel/error.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { OOMConfig } from '../documents/oom.ts'
import { oomRanking, oomTrigger, type TriggerValues, usesBytes } from '../documents/oom-expression.ts'
import { hasPressure } from '../oom/groups.ts'
import { type KillCalls, killGroup } from '../oom/kill.ts'
import { victimOf } from '../oom/rank.ts'
import { contextOf, type Sample, takeSample, triggerValues } from '../oom/sample.ts'
import { OOMAction } from '../resources/oom-action.ts'

/** The time between two samples, in milliseconds, where the configuration has none. */
const usualInterval = 500

/**
 * Milliseconds after an action in which the usual condition is not evaluated: its averages still hold the pressure that the action
 * ended, and the next to be killed would be innocent. A configuration's expression has `time_since_trigger` for this.
 */
const settlingTime = 60_000

/** Actions that are kept. */
const mostActions = 50

interface Dependencies extends KillCalls {
  readonly files: Pick<Kernel['files'], 'readTextIfThere' | 'listEntries'>
  readonly cgroup: KillCalls['cgroup'] & Pick<Kernel['cgroup'], 'hierarchy'>
}

/** What the configuration requests, compiled. */
interface Settings {
  /** Of the configuration it was compiled from. */
  readonly version: string | undefined
  readonly interval: number
  readonly strictClasses: boolean
  readonly isShort: ReturnType<typeof oomTrigger>
  /** Milliseconds without a question after an action. */
  readonly settlingTime: number
  /** Whether that uses bytes. */
  readonly bytes: boolean
  readonly rank: ReturnType<typeof oomRanking>
}

type Action = SpecOf<typeof OOMAction>

/**
 * Samples memory pressure, and kills a control group when the configuration's expression finds memory short: the least
 * important one, before the kernel has to choose a process.
 */
export const handleOutOfMemory = (kernel: Dependencies): Controller => {
  const handler = new OomHandler(kernel)
  return defineController({
    name: 'runtime.OOMController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { actions: exclusive(OOMAction) },
    reconcile({ config, actions, clock, wakeIn, log }) {
      const resource = config.get('v1alpha1')
      const settings = handler.settingsOf(resource?.metadata.version.toString(), () => find(declared(resource), OOMConfig))
      const left = handler.sampleIfDue(settings, clock.elapsed(), log)
      for (const [id, action] of handler.actions) actions.put(id, action)
      if (left !== undefined) wakeIn(left)
    },
  })
}

class OomHandler {
  readonly actions = new Map<string, Action>()
  #settings: Settings | undefined
  #root: string | undefined
  #last: Sample | undefined
  #triggeredAt: number | undefined
  #killedAt = Number.NEGATIVE_INFINITY
  #count = 0
  #isReported = false
  #failing = ''

  constructor(readonly kernel: Dependencies) {}

  settingsOf(version: string | undefined, read: () => ReturnType<typeof find<typeof OOMConfig>>): Settings {
    if (this.#settings && this.#settings.version === version) return this.#settings
    const { triggerExpression, cgroupRankingExpression, strictCgroupClassOrdering = true, sampleInterval } = read() ?? {}
    this.#settings = {
      version,
      interval: milliseconds(sampleInterval) || usualInterval,
      strictClasses: strictCgroupClassOrdering,
      isShort: oomTrigger(triggerExpression),
      settlingTime: triggerExpression === undefined ? settlingTime : 0,
      bytes: usesBytes(triggerExpression),
      rank: oomRanking(cgroupRankingExpression),
    }
    return this.#settings
  }

  /** Takes a sample if one is due, and acts on it; returns the milliseconds until the next, undefined if there will be none. */
  sampleIfDue(settings: Settings, now: number, log: Logger): number | undefined {
    const root = this.#rootOf(log)
    if (root === undefined) return undefined
    // A change of the configuration does not shorten the interval, over which changes are computed.
    const left = this.#last ? this.#last.at + settings.interval - now : 0
    if (left > 0) return left
    const [before, triggeredAt] = [this.#last, this.#triggeredAt]
    const sample = takeSample(this.kernel.files, root, now, settings)
    const values = triggerValues(sample, before, triggeredAt)
    this.#last = sample
    if (now - this.#killedAt >= settings.settlingTime && this.#isShort(settings, values, log)) {
      this.#triggeredAt = now
      // What is reported about an action is complete.
      const all = settings.bytes ? sample : takeSample(this.kernel.files, root, now, { bytes: true })
      if (this.#act(root, settings, triggerValues(all, before, triggeredAt), log)) this.#killedAt = now
    }
    return settings.interval
  }

  /** The root of the tree of control groups; without figures of pressure there is nothing to act on. */
  #rootOf(log: Logger): string | undefined {
    if (this.#root !== undefined || this.#isReported) return this.#root
    const { version, roots } = this.kernel.cgroup.hierarchy()
    if (version === 2 && roots.unified !== undefined && hasPressure(this.kernel.files, roots.unified)) this.#root = roots.unified
    else {
      this.#isReported = true
      const reason = version === 2 ? 'the kernel reports no memory pressure (PSI)' : 'control groups are of version 1'
      log.warn('out-of-memory handler is off', { reason })
    }
    return this.#root
  }

  #isShort({ isShort }: Settings, values: TriggerValues, log: Logger): boolean {
    try {
      return isShort(values)
    } catch (error) {
      this.#report(error, 'triggerExpression', log)
      return false
    }
  }

  /** Kills the group that ranks highest; returns whether one was killed. */
  #act(root: string, { rank, strictClasses }: Settings, values: TriggerValues, log: Logger): boolean {
    const triggerContext = contextOf(values)
    try {
      const victim = victimOf(this.kernel.files, root, rank, strictClasses)
      if (!victim) {
        log.warn('memory is short, but no cgroup may be killed')
        return false
      }
      const processes = killGroup(this.kernel, victim.path)
      log.warn('cgroup killed because memory is short', { cgroup: victim.path, score: victim.score, processes: processes.length })
      this.actions.set(String(this.#count++), { triggerContext, score: victim.score, processes })
      for (const id of [...this.actions.keys()].slice(0, -mostActions)) this.actions.delete(id)
      return true
    } catch (error) {
      if (error instanceof CelError) this.#report(error, 'cgroupRankingExpression', log)
      else log.error('kill cgroup failed', { error })
      return false
    }
  }

  /** An expression that fails does so at every sample: each error is reported once. */
  #report(error: unknown, key: string, log: Logger): void {
    if (!(error instanceof CelError)) throw error
    const problem = `${key}: ${error.message}`
    if (problem !== this.#failing) log.error('expression of OOMConfig failed', { key, error })
    this.#failing = problem
  }
}
