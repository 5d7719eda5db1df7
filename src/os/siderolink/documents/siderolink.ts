import { described, section, text, url } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** The tunnel to a management server. */
export const SideroLinkConfig = defineDocument({
  kind: 'SideroLinkConfig',
  description: 'The tunnel to a management server.',
  notYet: 'there is no tunnel, reach the machine API at its own address',
  schema: section({
    apiUrl: described(url('https', 'grpc'), 'The address of the API, with its token.'),
    uniqueToken: described(text, 'A unique token of this machine.'),
  }),
  rules({ apiUrl }, report) {
    if (!apiUrl) report.error(['apiUrl'], 'the URL of the server is required')
    else if (!['', '/'].includes(new URL(apiUrl).pathname)) report.error(['apiUrl'], 'the URL cannot have a path')
  },
})
