/**
 * Runs the machine's sequences, one at a time: phases in order, the tasks of a phase concurrently. A sequence may preempt
 * another as listed in the takeover table; otherwise it waits and is finally rejected.
 */

import type { Logger } from '../../cosi/log.ts'
import { within } from '../../timing/within.ts'
import { messageOf } from '../../wire/error-message.ts'
import type { Events } from '../runtime/public.ts'
import type { SequenceName } from '../sequences.ts'
import { PhaseLog } from './phase-log.ts'

/** A task of a phase. Events show its name. */
export interface Task {
  readonly name: string
  run(context: TaskContext): Promise<void> | void
}

/** The context of a running task. */
export interface TaskContext {
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Tasks that may run concurrently. */
export interface Phase {
  readonly name: string
  readonly tasks: readonly Task[]
}

/** Which sequences a sequence may preempt. */
const takeover: Partial<Record<SequenceName, readonly SequenceName[]>> = {
  initialize: ['maintenanceUpgrade', 'reboot', 'shutdown', 'reset', 'emergencyVolumeCleanup'],
  boot: ['reboot', 'reset', 'upgrade', 'shutdown', 'emergencyVolumeCleanup'],
  reboot: ['reboot'],
  reset: ['reboot'],
}

const lockWait = 60_000

/** Another sequence is running. */
export class SequenceLocked extends Error {
  override name = 'SequenceLocked'
}

/** The sequence was preempted by another; this is not a failure. */
export class TakenOver extends Error {
  override name = 'TakenOver'
}

/** Runs the machine's sequences. */
export class Sequencer {
  #current?: { name: SequenceName; abort: AbortController; done: Promise<void> } | undefined

  constructor(
    readonly events: Events,
    readonly log: Logger,
    readonly phases: PhaseLog = new PhaseLog(),
  ) {}

  /** The running sequence. */
  get running(): SequenceName | undefined {
    return this.#current?.name
  }

  /** Whether a sequence could start now. */
  mayStart(name: SequenceName): boolean {
    return !this.#current || (takeover[this.#current.name]?.includes(name) ?? false)
  }

  /**
   * Runs a sequence to its end. Rejects with SequenceLocked when another sequence runs for longer than a minute, otherwise with
   * the failed task's error.
   */
  async run(name: SequenceName, phases: readonly Phase[], actorId = ''): Promise<void> {
    // No await between check and assignment, so that concurrent callers cannot both start.
    while (this.#current && !this.#pushAside(name)) await this.#turn(this.#current)
    const abort = new AbortController()
    const { promise: done, resolve: finish } = Promise.withResolvers<void>()
    this.#current = { name, abort, done }
    const log = this.log.with({ sequence: name })
    const publish = (action: number, error?: unknown) =>
      this.events.publish(
        'machine.SequenceEvent',
        { sequence: name, action, ...(error !== undefined && { error: { message: messageOf(error) } }) },
        actorId,
      )
    const began = performance.now()
    publish(1)
    try {
      for (const phase of phases) {
        abort.signal.throwIfAborted()
        await this.#phase(name, phase, { log, signal: abort.signal }, actorId)
      }
      log.info('sequence done', { took: `${Math.round(performance.now() - began)}ms` })
      publish(2)
    } catch (error) {
      publish(2, error)
      if (abort.signal.aborted) throw abort.signal.reason
      log.error('sequence failed', { error: messageOf(error) })
      throw error
    } finally {
      if (this.#current?.abort === abort) this.#current = undefined
      finish()
    }
  }

  async #phase(sequence: SequenceName, phase: Phase, context: TaskContext, actorId: string): Promise<void> {
    const began = performance.now()
    const ended = this.phases.begin(
      sequence,
      phase.name,
      phase.tasks.map(({ name }) => name),
    )
    this.events.publish('machine.PhaseEvent', { phase: phase.name, action: 0 }, actorId)
    const outcomes = await Promise.allSettled(
      phase.tasks.map(async (task) => {
        this.events.publish('machine.TaskEvent', { task: task.name, action: 0 }, actorId)
        try {
          await task.run(context)
        } catch (error) {
          throw new Error(`task "${task.name}": ${messageOf(error)}`, { cause: error })
        }
        this.events.publish('machine.TaskEvent', { task: task.name, action: 1 }, actorId)
      }),
    )
    context.log.info('phase done', { phase: phase.name, took: `${Math.round(performance.now() - began)}ms` })
    this.events.publish('machine.PhaseEvent', { phase: phase.name, action: 1 }, actorId)
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    ended(failed?.reason)
    if (failed) throw failed.reason
  }

  #pushAside(name: SequenceName): boolean {
    const holder = this.#current
    if (!holder || !takeover[holder.name]?.includes(name)) return false
    holder.abort.abort(new TakenOver(`sequence "${name}" takes over`))
    this.#current = undefined
    return true
  }

  /** Waits for the running sequence to end, for at most a minute. */
  async #turn({ name, done }: { name: SequenceName; done: Promise<void> }): Promise<void> {
    await within(done, lockWait, () => new SequenceLocked(`sequence "${name}" is running, try again when it is done`))
  }
}
