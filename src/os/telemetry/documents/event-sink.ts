import { described, section, text, url } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** What is wrong with the endpoint of a document, or of `talos.events.sink`. */
export const sinkProblem = (endpoint: string): string | undefined =>
  /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):\d{1,5}$/.test(endpoint) ? undefined : 'an endpoint is a host and a port, like "192.168.10.3:3247"'

/** What is wrong with the URL of a document, or of `talos.logging.kernel`. */
export function kmsgProblem(target: string | undefined): string | undefined {
  const parsed = target && URL.canParse(target) ? new URL(target) : undefined
  if (!parsed?.port || !/^(tcp|udp|tls):$/.test(parsed.protocol)) return 'a URL with a port is required, like "tcp://192.168.3.7:3478/"'
  return ['', '/'].includes(parsed.pathname) ? undefined : 'the URL cannot have a path'
}

/** Where events are sent. */
export const EventSinkConfig = defineDocument({
  kind: 'EventSinkConfig',
  description: 'Where events are sent.',
  schema: section({ endpoint: described(text, 'Host and port of a gRPC server that events are published to.') }),
  rules({ endpoint = '' }, report) {
    const problem = sinkProblem(endpoint)
    if (problem) report.error(['endpoint'], problem)
  },
})

/** Where kernel messages are sent. */
export const KmsgLogConfig = defineDocument({
  kind: 'KmsgLogConfig',
  description: 'Where kernel messages are sent.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    url: described(url('tcp', 'udp', 'tls'), 'Where messages of the kernel are sent, as JSON, one a line or one a datagram.'),
  }),
  rules({ name, url: target }, report, mode) {
    if (mode === 'container') report.warning([], "the kernel's log of a container is its host's, which is not sent")
    if (!name) report.error(['name'], 'a name is required')
    const problem = kmsgProblem(target)
    if (problem) report.error(['url'], problem)
  },
})
