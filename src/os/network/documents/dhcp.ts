import * as v from 'valibot'
import { described, flag, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'
import { notYet } from '../../../document/unsupported.ts'
import { requireName } from './link-fields.ts'

const duid = v.pipe(
  v.string(),
  v.check((value) => /^([0-9a-fA-F]{2}(:[0-9a-fA-F]{2})+)$/.test(value), '{} is not a DUID, like "00:01:00:01"'),
)

const schema = section({
  name: described(text, 'The unique name of this document among those of its kind.'),
  routeMetric: described(unsigned(32), 'The metric of routes the server gives.'),
  ignoreHostname: described(flag, 'Does not take the name the server gives.'),
  clientIdentifier: described(oneOf('none', 'mac', 'duid'), 'What the machine calls itself.'),
  duidRaw: described(duid, 'That name in hexadecimal, with clientIdentifier duid.'),
})

const schema6 = section({
  name: described(text, 'The unique name of this document among those of its kind.'),
  routeMetric: described(
    notYet(unsigned(32), 'DHCPv6 provides no routes, set the metric of the route itself'),
    'The metric of routes the server gives.',
  ),
  ignoreHostname: described(notYet(flag, 'no host name is taken from DHCPv6, leave it out'), 'Does not take the name the server gives.'),
  clientIdentifier: described(
    notYet(oneOf('none', 'mac', 'duid'), 'DHCPv6 needs an identifier, use "mac" or "duid"', { accepts: ['mac', 'duid'] }),
    'What the machine calls itself.',
  ),
  duidRaw: described(duid, 'That name in hexadecimal, with clientIdentifier duid.'),
})

function rules({ name, clientIdentifier, duidRaw }: v.InferOutput<typeof schema>, report: Reporter): void {
  requireName(name, report)
  if ((clientIdentifier === 'duid') !== (duidRaw !== undefined)) {
    report.error(['duidRaw'], 'set duidRaw if, and only if, clientIdentifier is "duid"')
  }
}

/** Configures a DHCPv4 client on a link. */
export const DHCPv4Config = defineDocument({
  kind: 'DHCPv4Config',
  description: 'A DHCPv4 client on a link.',
  nameKey: 'name',
  schema,
  rules,
})

/** Configures a DHCPv6 client on a link. */
export const DHCPv6Config = defineDocument({
  kind: 'DHCPv6Config',
  description: 'A DHCPv6 client on a link.',
  nameKey: 'name',
  schema: schema6,
  rules,
})
