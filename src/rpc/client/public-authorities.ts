import { rootCertificates } from 'node:tls'

/** PEM of the authorities that the world trusts, and of these too. */
export const publicAuthorities = (more: string): string => (more === '' ? [...rootCertificates] : [...rootCertificates, more]).join('\n')
