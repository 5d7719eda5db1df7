/** The order in which something that a whole cluster shares is replaced, as data; `run.ts` carries it out. */
import type { Stage } from './authority.ts'

/** Credentials of the authority before and of the one after. */
export type Generation = 'old' | 'next'

/** One round: every node is changed, one after the other, and the result is proven on every node before the next round. */
export interface Round<S extends number = number> {
  /** The stage at which every node is afterwards. */
  readonly stage: S
  readonly name: string
}

/** A round of the replacement of an authority, with what holds afterwards. */
export interface AuthorityRound extends Round<Exclude<Stage, 0>> {
  /** Which authorities' clients every node accepts. */
  readonly accepts: readonly Generation[]
  /** Which authority signs every certificate that is issued. */
  readonly issuer: Generation
}

/** The three rounds of the replacement of an authority. At every moment each node accepts what each other node issues. */
export const authorityRounds: readonly AuthorityRound[] = [
  { stage: 1, name: 'accept the new authority', accepts: ['old', 'next'], issuer: 'old' },
  { stage: 2, name: 'issue with the new authority', accepts: ['old', 'next'], issuer: 'next' },
  { stage: 3, name: 'drop the old authority', accepts: ['next'], issuer: 'next' },
]
