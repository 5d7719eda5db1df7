import { described, duration, integer, needed, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { requireName } from './link-fields.ts'

/** Configures a TCP endpoint that must be reachable for the network to be ready. */
export const TCPProbeConfig = defineDocument({
  kind: 'TCPProbeConfig',
  description: 'A TCP endpoint that must be reachable for the network to be ready.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    interval: described(duration, 'How often it is tried.'),
    failureThreshold: described(integer, 'How many tries in a row have to fail.'),
    endpoint: described(needed(text), 'Address and port that are tried.'),
    timeout: described(duration, 'How long a try may take.'),
  }),
  rules({ name, interval, failureThreshold, endpoint, timeout }, report) {
    requireName(name, report)
    if (!endpoint) report.error(['endpoint'], 'an endpoint is required, like "example.com:443"')
    if (milliseconds(interval) < 0) report.error(['interval'], 'cannot be negative')
    if (milliseconds(timeout) < 0) report.error(['timeout'], 'cannot be negative')
    if ((failureThreshold ?? 0) < 0) report.error(['failureThreshold'], 'cannot be negative')
  },
})
