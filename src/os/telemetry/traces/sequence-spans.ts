import type { Events, MachineEvent } from '../../runtime/public.ts'
import { randomId, type Span } from './span.ts'
import type { SpanQueue } from './span-queue.ts'

/** Something that has begun. */
interface Begun {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string | undefined
  readonly start: number
  readonly attributes: Span['attributes']
}

/** `machine.SequenceEvent` has NOOP, START and STOP; phases and tasks have START and STOP. */
const sequenceAction = { start: 1, stop: 2 } as const
const partAction = { start: 0, stop: 1 } as const

/**
 * Makes a trace of every sequence of the machine: one span for it, and below that one for each phase and each of its tasks. Events of a
 * sequence come one after another, since one runs at a time.
 */
export class SequenceSpans {
  readonly #queue: Pick<SpanQueue, 'add'>
  #traceId = ''
  #sequence: Begun | undefined
  #phase: Begun | undefined
  readonly #tasks = new Map<string, Begun>()
  /** The last event that was taken. */
  #last = ''

  constructor(queue: Pick<SpanQueue, 'add'>) {
    this.#queue = queue
  }

  /** Takes what has happened since the last time, from the oldest event kept on, and then what happens, until the signal. */
  async follow(events: Pick<Events, 'follow'>, signal: AbortSignal): Promise<void> {
    const from = this.#last === '' ? { tail: -1 } : { afterId: this.#last }
    for await (const event of events.follow(from, signal)) {
      this.#take(event)
      this.#last = event.id
    }
  }

  #take({ type, payload, time, actorId }: MachineEvent): void {
    const at = time.getTime()
    if (type === 'machine.SequenceEvent') {
      if (payload.action === sequenceAction.start) this.#begin(String(payload.sequence), at, actorId)
      else if (payload.action === sequenceAction.stop) this.#end(at, failureOf(payload.error))
    } else if (!this.#sequence) return
    else if (type === 'machine.PhaseEvent') {
      const name = String(payload.phase)
      if (payload.action === partAction.start) this.#phase = begun(`phase ${name}`, at, this.#sequence, { phase: name })
      else this.#phase = this.#finish(this.#phase, at)
    } else if (type === 'machine.TaskEvent') {
      const name = String(payload.task)
      if (payload.action === partAction.start)
        this.#tasks.set(name, begun(`task ${name}`, at, this.#phase ?? this.#sequence, { task: name }))
      else {
        this.#finish(this.#tasks.get(name), at)
        this.#tasks.delete(name)
      }
    }
  }

  #begin(name: string, at: number, actor: string): void {
    // One that takes over leaves the other without an end.
    if (this.#sequence) this.#end(at, 'another sequence took over')
    this.#traceId = randomId(16)
    this.#sequence = begun(`sequence ${name}`, at, undefined, { sequence: name, ...(actor !== '' && { actor }) })
  }

  /** What has no end of its own ends with the sequence, and has its failure. */
  #end(at: number, failure: string | undefined): void {
    for (const task of this.#tasks.values()) this.#finish(task, at, failure)
    this.#tasks.clear()
    this.#phase = this.#finish(this.#phase, at, failure)
    this.#sequence = this.#finish(this.#sequence, at, failure)
  }

  #finish(part: Begun | undefined, end: number, failure?: string): undefined {
    if (part) this.#queue.add({ ...part, traceId: this.#traceId, kind: 'internal', end, failure })
  }
}

const begun = (name: string, start: number, parent: Begun | undefined, attributes: Span['attributes']): Begun => ({
  name,
  start,
  attributes,
  spanId: randomId(8),
  parentSpanId: parent?.spanId,
})

function failureOf(error: unknown): string | undefined {
  const { message } = (error ?? {}) as { message?: unknown }
  return typeof message === 'string' && message !== '' ? message : undefined
}
