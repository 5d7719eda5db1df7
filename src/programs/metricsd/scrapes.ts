import { type Format, mediaTypes } from './accept.ts'

/** Milliseconds for which metrics that were read are served again: however many clients there are, the node reads them once. */
const freshTime = 1000

/** Metrics in one format, as they are sent. */
export interface Scrape {
  readonly type: string
  readonly plain: Uint8Array
  readonly gzip: Uint8Array
}

/** Reads metrics on behalf of all clients. */
export class Scrapes {
  readonly #read: (format: Format) => Promise<string>
  readonly #now: () => number
  readonly #latest = new Map<Format, { readonly at: number; readonly scrape: Promise<Scrape> }>()

  /** `now` gives monotonic milliseconds. */
  constructor(read: (format: Format) => Promise<string>, now: () => number = () => performance.now()) {
    this.#read = read
    this.#now = now
  }

  /** The metrics, at most a second old. Rejects when they cannot be read. */
  get(format: Format): Promise<Scrape> {
    const latest = this.#latest.get(format)
    if (latest && this.#now() - latest.at < freshTime) return latest.scrape
    const scrape = this.#read(format).then((text): Scrape => {
      const plain = Buffer.from(text)
      return { type: mediaTypes[format], plain, gzip: Bun.gzipSync(plain) }
    })
    this.#latest.set(format, { at: this.#now(), scrape })
    return scrape
  }
}
