import { described, section, text, url } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** The link to a management server (SideroLink). */
export const SideroLinkConfig = defineDocument({
  kind: 'SideroLinkConfig',
  description: 'The link to a management server (SideroLink).',
  schema: section({
    apiUrl: described(
      url('https', 'grpc'),
      'The URL of the server: `https://HOST[:PORT]` or, without TLS, `grpc://HOST:PORT`; its query may have `jointoken`, and `grpc_tunnel=true` to send WireGuard through the API.',
    ),
    uniqueToken: described(
      text,
      'The token that distinguishes this machine from others with its UUID; one that the server has written to META precedes it.',
    ),
  }),
  rules({ apiUrl }, report) {
    if (!apiUrl) report.error(['apiUrl'], 'the URL of the server is required')
    else if (!['', '/'].includes(new URL(apiUrl).pathname)) report.error(['apiUrl'], 'the URL cannot have a path')
    else if (!new URL(apiUrl).port && apiUrl.startsWith('grpc:')) report.error(['apiUrl'], 'grpc:// needs a port')
  },
})
