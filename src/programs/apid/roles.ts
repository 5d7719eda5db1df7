/** What a client's certificate grants: whether the client is accepted, and with which roles. */

import type { PeerCertificate } from 'node:tls'
import { containsAddress, isManagementAddress, parsePrefix } from '../../wire/prefix.ts'
import { allRoles, type Role } from '../../wire/x509/roles.ts'

/** Who is at the other end of a connection. */
export interface Client {
  readonly roles: readonly Role[]
  /** Speaks for others: another node's apid, whose `talos-role` metadata is believed. */
  readonly impersonator: boolean
  /** The source address, and the common name of the certificate: forwarded to the node for its logs. */
  readonly address?: string
  readonly name?: string
  /** Fingerprint of the certificate, which distinguishes it from other clients of its address. */
  readonly identity?: string
  /** The fingerprint of the authority that issued it. */
  readonly authority?: string
  /** When its connection was made, by the monotonic clock. */
  readonly since?: number
}

/** Everyone in maintenance mode: may look, and hand in a configuration. */
const anonymous: Client = { roles: ['os:reader'], impersonator: false }

/** The management server of a machine in maintenance. */
const manager: Client = { roles: ['os:admin'], impersonator: false }

/**
 * Who a client without a certificate is: on a machine that listens in the network of its management server alone, those of that
 * network are its administrators. WireGuard has verified them, and the /64 is routed into its link: to another who claims
 * such an address, no answer returns.
 */
export function visitorOf(address: string | undefined, host: string | undefined): Client {
  if (!address || !host || !isManagementAddress(host) || !isManagementAddress(address)) return anonymous
  return containsAddress(parsePrefix(`${host}/64`), address) ? manager : anonymous
}

const clientAuth = '1.3.6.1.5.5.7.3.2'

/** The client a verified certificate is of; undefined when the certificate is not one for clients only. */
export function clientOf(certificate: Pick<PeerCertificate, 'subject'> & { ext_key_usage?: readonly string[] }): Client | undefined {
  const usages = certificate.ext_key_usage ?? []
  if (usages.length !== 1 || usages[0] !== clientAuth) return undefined
  const organizations: readonly string[] = [(certificate.subject?.O ?? []) as string | string[]].flat()
  const roles = allRoles.filter((role) => organizations.includes(role))
  const name = certificate.subject?.CN as string | undefined
  return { roles, impersonator: roles.includes('os:impersonator'), ...(name && { name }) }
}
