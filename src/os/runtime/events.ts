/** The machine's events, in order: a ring that subscribers read from any point. */
import { randomBytes } from 'node:crypto'

/** One event: the full name of its message and its fields. */
export interface MachineEvent {
  /** 20 characters of base32hex that increase with time (xid). */
  readonly id: string
  readonly time: Date
  /** Full message name, `machine.SequenceEvent`. */
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  /** The request that caused it, if any. */
  readonly actorId: string
}

/** Where a reader starts. */
export interface EventsFrom {
  /** The last so many events; negative for all that are kept. */
  tail?: number
  /** Everything after the event with this id. */
  afterId?: string
  /** Everything not older than this many seconds. */
  seconds?: number
  /** Only events of this actor. */
  actorId?: string
}

const capacity = 1000
const gap = 10

/** The machine's events. */
export class Events {
  readonly #ring: MachineEvent[] = []
  readonly #waiting = new Set<() => void>()
  readonly #id = idSource()
  readonly #now: () => Date
  #next = 0

  constructor(now: () => Date = () => new Date()) {
    this.#now = now
  }

  /** Adds an event and wakes its readers. */
  publish(type: string, payload: Record<string, unknown>, actorId = ''): void {
    const time = this.#now()
    this.#ring[this.#next % capacity] = { id: this.#id(time), time, type, payload, actorId }
    this.#next++
    for (const wake of [...this.#waiting]) wake()
  }

  /** The most recent event of a type that matches. */
  last(type: string, pleases: (payload: Readonly<Record<string, unknown>>) => boolean = () => true): MachineEvent | undefined {
    for (let at = this.#next - 1; at >= this.#oldest; at--) {
      const event = this.#ring[at % capacity]
      if (event?.type === type && pleases(event.payload)) return event
    }
    return undefined
  }

  /** Events from a point on that is fixed by this call, then new ones, until the signal. Throws when the reader is too slow for the ring. */
  follow(from: EventsFrom, signal: AbortSignal): AsyncGenerator<MachineEvent, void> {
    return this.#matching(this.#start(from), from.actorId, signal)
  }

  async *#matching(start: number, actorId: string | undefined, signal: AbortSignal): AsyncGenerator<MachineEvent, void> {
    for await (const { event, missed } of this.after(start, signal)) {
      if (missed > 0) throw new Error(`read events: the reader is ${missed} events too late, start again`)
      if (!actorId || event.actorId === actorId) yield event
    }
  }

  /** An id after those of all events so far, for an event that is not kept. */
  nextId(): string {
    return this.#id(this.#now())
  }

  /** The position of the oldest event that is kept. */
  get start(): number {
    return this.#oldest
  }

  /** How many events were published. */
  get end(): number {
    return this.#next
  }

  /** Events from a position on, then new ones, until the signal: each with the position after it, and how many before it were overwritten. */
  async *after(from: number, signal: AbortSignal): AsyncGenerator<{ event: MachineEvent; next: number; missed: number }, void> {
    let position = from
    let wake = () => {}
    const nudge = () => wake()
    this.#waiting.add(nudge)
    signal.addEventListener('abort', nudge)
    try {
      while (!signal.aborted) {
        if (position < this.#next) {
          const at = Math.max(position, this.#oldest)
          const event = this.#ring[at % capacity]
          const missed = at - position
          position = at + 1
          if (event) yield { event, next: position, missed }
          continue
        }
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        if (position === this.#next && !signal.aborted) await promise
      }
    } finally {
      this.#waiting.delete(nudge)
      signal.removeEventListener('abort', nudge)
    }
  }

  get #oldest(): number {
    return Math.max(0, this.#next - capacity + gap)
  }

  #start({ tail, afterId, seconds }: EventsFrom): number {
    if (afterId) return this.#first((event) => event.id > afterId)
    if (seconds) {
      const since = this.#now().getTime() - seconds * 1000
      return this.#first((event) => event.time.getTime() >= since)
    }
    if (tail === undefined || tail === 0) return this.#next
    return tail < 0 ? this.#oldest : Math.max(this.#oldest, this.#next - tail)
  }

  #first(pleases: (event: MachineEvent) => boolean): number {
    for (let at = this.#oldest; at < this.#next; at++) {
      const event = this.#ring[at % capacity]
      if (event && pleases(event)) return at
    }
    return this.#next
  }
}

/** Ids in xid's format: 4 bytes of time, 5 bytes of this process and 3 bytes of counter. */
function idSource(): (time: Date) => string {
  const own = randomBytes(5)
  let counter = randomBytes(3).readUIntBE(0, 3)
  return (time) => {
    const bytes = Buffer.alloc(12)
    bytes.writeUInt32BE(Math.floor(time.getTime() / 1000) >>> 0, 0)
    own.copy(bytes, 4)
    counter = (counter + 1) & 0xffffff
    bytes.writeUIntBE(counter, 9, 3)
    return base32hex(bytes)
  }
}

const alphabet = '0123456789abcdefghijklmnopqrstuv'

function base32hex(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet[(held >> bits) & 31]
    }
    held &= (1 << bits) - 1
  }
  return bits > 0 ? text + alphabet[(held << (5 - bits)) & 31] : text
}
