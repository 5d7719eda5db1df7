/** The metadata by which apid tells the node who called it: an address, and the common name of a certificate (percent-encoded). */
export const callerAddress = 'ichor-caller-address'
export const callerName = 'ichor-caller-name'
