import { duration, integer, needed, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { requireName } from './link-fields.ts'

/** Configures a TCP endpoint that must be reachable for the network to be ready. */
export const TCPProbeConfig = defineDocument({
  kind: 'TCPProbeConfig',
  description: 'A TCP endpoint that must be reachable for the network to be ready.',
  nameKey: 'name',
  schema: section({ name: text, interval: duration, failureThreshold: integer, endpoint: needed(text), timeout: duration }),
  rules({ name, interval, failureThreshold, endpoint, timeout }, report) {
    requireName(name, report)
    if (!endpoint) report.error(['endpoint'], 'an endpoint is required, like "example.com:443"')
    if (milliseconds(interval) < 0) report.error(['interval'], 'cannot be negative')
    if (milliseconds(timeout) < 0) report.error(['timeout'], 'cannot be negative')
    if ((failureThreshold ?? 0) < 0) report.error(['failureThreshold'], 'cannot be negative')
  },
})
