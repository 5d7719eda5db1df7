import { described, oneOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** What is wrong with a host name of the configuration, or of the kernel command line. */
export function hostnameProblem(hostname: string): string | undefined {
  const [first = ''] = hostname.split('.')
  if (hostname.length > 253) return `longer than the 253 characters a full name may have: ${hostname.length}`
  return first.length < 1 || first.length > 63 ? 'the first label of a name has 1 to 63 characters' : undefined
}

/** Configures the hostname. */
export const HostnameConfig = defineDocument({
  kind: 'HostnameConfig',
  description: 'The hostname of the node: a fixed name, or one derived from its identity.',
  schema: section({
    auto: described(oneOf('stable', 'off'), 'Whether the machine finds a name by itself.'),
    hostname: described(text, 'The name, with or without a domain.'),
  }),
  rules({ auto, hostname }, report) {
    if (hostname && auto && auto !== 'off') report.error(['auto'], 'set either hostname or "auto: stable", not both')
    if (!hostname && (!auto || auto === 'off')) report.error([], 'one of hostname and "auto: stable" is required')
    const problem = hostname && hostnameProblem(hostname)
    if (problem) report.error(['hostname'], problem)
  },
})
