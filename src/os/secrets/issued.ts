import { dueForRenewal, type PemPair, renewalTime, toBase64 } from '../../pki/certificate.ts'

/** A certificate and key as specs hold them: base64 of PEM. */
export interface EncodedPair {
  crt: string
  key: string
}

/** Encodes a pair for a spec. */
export const encoded = ({ crt, key }: PemPair): EncodedPair => ({ crt: toBase64(crt), key: toBase64(key) })

/** Decodes a pair of a spec or a configuration. */
export const decoded = ({ crt = '', key = '' }: Partial<EncodedPair>): PemPair => ({ crt: text(crt), key: text(key) })

function text(value: string): string {
  return Buffer.from(value, 'base64').toString('utf8')
}

/**
 * Issued certificates, each kept until half of its lifetime is over or its inputs change, so that a controller may request
 * them in every round.
 */
export class Issued {
  readonly #kept = new Map<string, { from: unknown; pair: PemPair }>()
  #next = Number.POSITIVE_INFINITY

  constructor(readonly now: () => Date) {}

  /** The pair of this name; issues it again when it is due for renewal or `from` has changed. */
  async pair(name: string, from: unknown, make: () => PemPair | Promise<PemPair>): Promise<EncodedPair> {
    let kept = this.#kept.get(name)
    if (!kept || !Bun.deepEquals(kept.from, from) || dueForRenewal(kept.pair.crt, this.now())) {
      kept = { from, pair: await make() }
      this.#kept.set(name, kept)
    }
    this.#next = Math.min(this.#next, renewalTime(kept.pair.crt).getTime())
    return encoded(kept.pair)
  }

  /** When the first of the pairs requested since the last call is due for renewal, in wall-clock time, as certificates are. */
  nextRenewal(): Date {
    const next = new Date(this.#next)
    this.#next = Number.POSITIVE_INFINITY
    return next
  }
}
