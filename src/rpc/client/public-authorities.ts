import { rootCertificates } from 'node:tls'

/** PEM of the public authorities. */
export const publicAuthorities = rootCertificates.join('\n')
