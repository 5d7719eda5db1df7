/**
 * How far a machine is in the replacement of an authority, and what takes it one step further. Both are read from its
 * configuration, so that a rotation that was interrupted continues where it was.
 */
import { X509Certificate } from 'node:crypto'
import type { ConfigContainer } from '../../../os/config/container.ts'

/** The part of the configuration whose authority is replaced: `machine.ca` or `cluster.ca`. */
export type Section = 'machine' | 'cluster'

/** A certificate and its key as a configuration holds them: base64 of PEM. */
export interface EncodedPair {
  readonly crt: string
  readonly key: string
}

/** The authority that is replaced, and the one that takes its place. */
export interface Replacement {
  readonly old: { readonly crt: string }
  readonly next: EncodedPair
}

/** How far a machine is: 0 knows only the old authority, 1 accepts the new one, 2 issues with it, 3 has dropped the old one. */
export type Stage = 0 | 1 | 2 | 3

/** A machine whose authority is neither of the two. */
export class ForeignAuthority extends Error {
  override name = 'ForeignAuthority'
}

/** The fingerprint (SHA-256) of a certificate in a configuration. */
export const fingerprintOf = (crt: string): string => new X509Certificate(Buffer.from(crt, 'base64')).fingerprint256

const partOf = (config: ConfigContainer, section: Section) => {
  const { ca, acceptedCAs = [] } = config.v1alpha1?.[section] ?? {}
  return { ca, accepted: acceptedCAs.flatMap(({ crt }) => (crt ? [crt] : [])) }
}

/** The authority that a configuration issues with; undefined where it has none with a key, as a worker. */
export function authorityOf(config: ConfigContainer, section: Section): EncodedPair | undefined {
  const { crt, key } = partOf(config, section).ca ?? {}
  return crt && key ? { crt, key } : undefined
}

/** The stage of a machine. Throws ForeignAuthority. */
export function stageOf(config: ConfigContainer, section: Section, { old, next }: Replacement): Stage {
  const { ca, accepted } = partOf(config, section)
  const [before, after] = [fingerprintOf(old.crt), fingerprintOf(next.crt)]
  const trusted = new Set(accepted.map(fingerprintOf))
  const issuing = ca?.crt ? fingerprintOf(ca.crt) : trusted.has(before) ? before : after
  if (issuing === after) return trusted.has(before) ? 2 : 3
  if (issuing === before) return trusted.has(after) ? 1 : 0
  throw new ForeignAuthority(
    `${section}.ca is ${issuing}, neither the authority that is replaced (${before}) nor the new one (${after}): another rotation was begun with another new authority, continue that one first`,
  )
}

/** Authorities that a configuration accepts besides these two. They stay accepted. */
export function othersAccepted(config: ConfigContainer, section: Section, { old, next }: Replacement): string[] {
  const known = [old.crt, next.crt].map(fingerprintOf)
  return partOf(config, section)
    .accepted.map(fingerprintOf)
    .filter((one) => !known.includes(one))
}

/** The configuration at the next stage. A worker is never given the key. */
export function advance(config: ConfigContainer, section: Section, { old, next }: Replacement, stage: Exclude<Stage, 0>): ConfigContainer {
  const { accepted } = partOf(config, section)
  const without = (crt: string) => accepted.filter((one) => fingerprintOf(one) !== fingerprintOf(crt))
  const type = config.v1alpha1?.machine?.type
  const key = type === 'controlplane' || type === 'init' ? next.key : ''
  const accept = (crts: readonly string[]) =>
    crts.length > 0
      ? [{ op: 'add', path: `/${section}/acceptedCAs`, value: crts.map((crt) => ({ crt })) }]
      : [{ op: 'remove', path: `/${section}/acceptedCAs` }]
  const operations = {
    1: () => accept([...without(next.crt), next.crt]),
    2: () => [{ op: 'add', path: `/${section}/ca`, value: { crt: next.crt, key } }, ...accept([...without(next.crt), old.crt])],
    3: () => accept(without(old.crt)),
  }
  return config.patch(JSON.stringify(operations[stage]()))
}
