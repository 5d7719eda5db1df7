/**
 * Runs the sequences of the machine, one at a time: phases in order, the tasks of a phase side by side. A sequence may
 * take over from another where the table allows it; everything else waits for its turn or is refused.
 */
import type { Logger } from '../../cosi/log.ts'
import type { Events } from '../runtime/events.ts'
import { PhaseLog } from './phase-log.ts'

/** Sequences by name, numbered as the field numbers them. */
export const sequenceIds = {
  noop: 0,
  boot: 1,
  initialize: 2,
  install: 3,
  shutdown: 4,
  upgrade: 5,
  stageUpgrade: 6,
  maintenanceUpgrade: 7,
  reset: 8,
  reboot: 9,
  emergencyVolumeCleanup: 10,
} as const

/** The name of a sequence. */
export type SequenceName = keyof typeof sequenceIds

/** Something to be done, under the name events show. */
export interface Task {
  readonly name: string
  run(context: TaskContext): Promise<void> | void
}

/** What a task is given. */
export interface TaskContext {
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Tasks that may run side by side. */
export interface Phase {
  readonly name: string
  readonly tasks: readonly Task[]
}

/** Who may push whom aside. */
const takeover: Partial<Record<SequenceName, readonly SequenceName[]>> = {
  initialize: ['maintenanceUpgrade', 'reboot', 'shutdown', 'reset', 'emergencyVolumeCleanup'],
  boot: ['reboot', 'reset', 'upgrade', 'shutdown', 'emergencyVolumeCleanup'],
  reboot: ['reboot'],
  reset: ['reboot'],
}

const lockWait = 60_000

/** Thrown to one who asks for a sequence while another has the machine. */
export class SequenceLocked extends Error {
  override name = 'SequenceLocked'
}

/** Thrown to the one whose sequence was pushed aside; nothing is wrong, another sequence has the machine now. */
export class TakenOver extends Error {
  override name = 'TakenOver'
}

/** The one place from which sequences are run. */
export class Sequencer {
  #current?: { name: SequenceName; abort: AbortController; done: Promise<void> }

  constructor(
    readonly events: Events,
    readonly log: Logger,
    readonly phases: PhaseLog = new PhaseLog(),
  ) {}

  /** What runs now. */
  get running(): SequenceName | undefined {
    return this.#current?.name
  }

  /** Whether a sequence could start now. */
  mayStart(name: SequenceName): boolean {
    return !this.#current || (takeover[this.#current.name]?.includes(name) ?? false)
  }

  /**
   * Runs a sequence to its end. Rejects with SequenceLocked when another holds the machine for longer than a minute,
   * with the failing task's error otherwise.
   */
  async run(name: SequenceName, phases: readonly Phase[], actorId = ''): Promise<void> {
    // Without an await between looking and taking, two who ask at once cannot both get it.
    while (this.#current && !this.#pushAside(name)) await this.#turn(this.#current)
    const abort = new AbortController()
    const { promise: done, resolve: finish } = Promise.withResolvers<void>()
    this.#current = { name, abort, done }
    const log = this.log.with({ sequence: name })
    const tell = (action: number, error?: unknown) =>
      this.events.publish(
        'machine.SequenceEvent',
        { sequence: name, action, ...(error ? { error: { message: text(error) } } : {}) },
        actorId,
      )
    const began = performance.now()
    tell(1)
    try {
      for (const phase of phases) {
        abort.signal.throwIfAborted()
        await this.#phase(name, phase, { log, signal: abort.signal }, actorId)
      }
      log.info('sequence done', { took: `${Math.round(performance.now() - began)}ms` })
      tell(2)
    } catch (error) {
      tell(2, error)
      if (abort.signal.aborted) throw abort.signal.reason
      log.error('sequence failed', { error: text(error) })
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
          throw new Error(`task "${task.name}": ${text(error)}`, { cause: error })
        }
        this.events.publish('machine.TaskEvent', { task: task.name, action: 1 }, actorId)
      }),
    )
    context.log.info('phase done', { phase: phase.name, took: `${Math.round(performance.now() - began)}ms` })
    this.events.publish('machine.PhaseEvent', { phase: phase.name, action: 1 }, actorId)
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    ended(failed && text(failed.reason))
    if (failed) throw failed.reason
  }

  #pushAside(name: SequenceName): boolean {
    const holder = this.#current
    if (!holder || !takeover[holder.name]?.includes(name)) return false
    holder.abort.abort(new TakenOver(`sequence "${name}" takes over`))
    this.#current = undefined
    return true
  }

  /** Waits until the holder is done, but not for ever. */
  async #turn({ name, done }: { name: SequenceName; done: Promise<void> }): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const refusal = new SequenceLocked(`sequence "${name}" is running, try again when it is done`)
    const timer = setTimeout(() => reject(refusal), lockWait)
    await Promise.race([done, late]).finally(() => clearTimeout(timer))
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
