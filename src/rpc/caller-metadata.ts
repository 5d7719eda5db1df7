/** The metadata in which apid states who called it first: an address, and the common name of a certificate (percent-encoded). */
export const callerAddress = 'ichor-caller-address'
export const callerName = 'ichor-caller-name'
/** The fingerprint of that certificate. */
export const callerIdentity = 'ichor-caller-identity'
/** The fingerprint (SHA-256) of the authority that issued it. */
export const callerAuthority = 'ichor-caller-authority'
/** How long the caller's connection to this node's apid has been open, in milliseconds. */
export const connectionAge = 'ichor-connection-age'
/** Asks for a call to another node to go over a connection that is made for it. */
export const newConnection = 'ichor-new-connection'
