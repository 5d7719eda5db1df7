import { rootCertificates } from 'node:tls'

/** PEM of the public authorities, and of additional ones. */
export const publicAuthorities = (more: string): string => (more === '' ? [...rootCertificates] : [...rootCertificates, more]).join('\n')
