import type { Clock } from '../../../cosi/clock.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { DeliveryStatus } from '../resources/delivery-status.ts'
import { DeliveryCounts } from './delivery-counts.ts'

/** How much of a source a destination has. */
interface Reader {
  readonly behind: number
  readonly positions: Readonly<Record<string, number>>
}

/** One destination with its own position in the source. */
export interface Destination<R extends Reader> {
  readonly reader: R
  readonly counts: DeliveryCounts
}

/** The destinations of one source; each keeps its position until it is no longer configured. */
export class Destinations<R extends Reader> {
  readonly #known = new Map<string, Destination<R>>()

  constructor(
    readonly source: SpecOf<typeof DeliveryStatus>['source'],
    readonly clock: Pick<Clock, 'elapsed'>,
    readonly make: (counts: DeliveryCounts, id: string) => R,
  ) {}

  /** The destination with that id, made when it is new; `name` is what logs and status show. */
  get(id: string, name = id): Destination<R> {
    let known = this.#known.get(id)
    if (!known) {
      const counts = new DeliveryCounts(name, this.clock)
      known = { counts, reader: this.make(counts, id) }
      this.#known.set(id, known)
    }
    return known
  }

  /** Forgets the others. */
  retain(ids: ReadonlySet<string>): void {
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id)
  }

  /** What each receiver that is connected does not have yet. */
  waiting(): number[] {
    return [...this.#known.values()].flatMap(({ reader, counts }) => (counts.isConnected ? [reader.behind] : []))
  }

  /** What became of the messages for one destination. */
  status({ reader, counts }: Destination<R>): SpecOf<typeof DeliveryStatus> {
    const { destination, isConnected: connected, sent, dropped, droppedBytes, isLosing: losing, lastError } = counts
    const { behind, positions } = reader
    return { source: this.source, destination, connected, sent, behind, dropped, droppedBytes, losing, lastError, positions }
  }
}

/** Milliseconds between two reports of counts that change all the time. */
export const reportInterval = 5_000
