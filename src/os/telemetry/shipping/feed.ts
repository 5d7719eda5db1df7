/** Messages that are sent together. */
export interface Batch {
  readonly texts: readonly string[]
  /** Records that the receiver has them: they are not sent again. */
  delivered(): void
}

/** What a destination gets. Each destination has a feed of its own, so that none waits for another. */
export interface Feed {
  /** Batches after the last one that was delivered, then new ones, until the signal. */
  batches(signal: AbortSignal): AsyncGenerator<Batch, void>
  /** How much is not delivered, in the unit of the feed. */
  readonly behind: number
  /** The last that was delivered of each source. */
  readonly positions: Readonly<Record<string, number>>
}

/** Receives what is lost to a destination: bytes of a log, or records. */
export type Dropped = (source: string, count: number, unit: 'bytes' | 'records') => void
