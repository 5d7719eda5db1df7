/** Metadata in which apid forwards the original caller: its address, and the common name of its certificate (percent-encoded). */
export const callerAddress = 'ichor-caller-address'
export const callerName = 'ichor-caller-name'
/** The fingerprint of that certificate. */
export const callerIdentity = 'ichor-caller-identity'
/** The fingerprint (SHA-256) of the authority that issued it. */
export const callerAuthority = 'ichor-caller-authority'
/** How long the caller's connection to this node's apid has been open, in milliseconds. */
export const connectionAge = 'ichor-connection-age'
/** Requests a new connection for a call to another node. */
export const newConnection = 'ichor-new-connection'
/** Requests events of this system's own types too: the field's clients end a watch at a type that they cannot decode. */
export const ownEvents = 'ichor-own-events'
