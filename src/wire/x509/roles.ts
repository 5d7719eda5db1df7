/** The roles of the machine API: the organizations of a client certificate (RFC 5280, section 4.1.2.6). */

/** Every role. */
export const allRoles = [
  'os:admin',
  'os:operator',
  'os:reader',
  'os:etcd:backup',
  'os:image:verifier',
  'os:meta:writer',
  'os:impersonator',
  // A cluster whose backups this one keeps: the one role that only Ichor has.
  'ichor:etcd:store',
] as const

/** A role that a client may have. */
export type Role = (typeof allRoles)[number]

/** Whether there is a role of that name. */
export const isRole = (name: string): name is Role => allRoles.some((role) => role === name)
