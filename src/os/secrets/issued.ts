import { dueForRenewal, type PemPair, renewalTime, toBase64 } from '../../pki/certificate.ts'

/** A certificate and key as specs hold them: base64 of PEM. */
export interface EncodedPair {
  crt: string
  key: string
}

/** A pair as specs hold it. */
export const encoded = ({ crt, key }: PemPair): EncodedPair => ({ crt: toBase64(crt), key: toBase64(key) })

/** A pair from a spec or a configuration. */
export const decoded = ({ crt = '', key = '' }: Partial<EncodedPair>): PemPair => ({ crt: text(crt), key: text(key) })

function text(value: string): string {
  return Buffer.from(value, 'base64').toString('utf8')
}

/**
 * Certificates that were issued, each kept until half of its life is over or what it was made from is another: a
 * controller may then ask for them in every round.
 */
export class Issued {
  readonly #kept = new Map<string, { from: unknown; pair: PemPair }>()
  #next = Number.POSITIVE_INFINITY

  constructor(readonly now: () => Date) {}

  /** The pair of this name, made anew when it is due or `from` has changed. */
  async pair(name: string, from: unknown, make: () => PemPair | Promise<PemPair>): Promise<EncodedPair> {
    let kept = this.#kept.get(name)
    if (!kept || !Bun.deepEquals(kept.from, from) || dueForRenewal(kept.pair.crt, this.now())) {
      kept = { from, pair: await make() }
      this.#kept.set(name, kept)
    }
    this.#next = Math.min(this.#next, renewalTime(kept.pair.crt).getTime())
    return encoded(kept.pair)
  }

  /** When the first of the pairs asked for since the last call is due, by the wall clock, as certificates are. */
  nextRenewal(): Date {
    const next = new Date(this.#next)
    this.#next = Number.POSITIVE_INFINITY
    return next
  }
}
