import { X509Certificate } from 'node:crypto'
import * as v from 'valibot'
import { described, duration, ipAndPort, listOf, mapOf, needed, oneOf, section, share, text, url } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { splitHostPort } from '../../../wire/host-port.ts'
import { protocols } from '../resources/otlp-protocols.ts'

const prometheus = section({
  listen: v.pipe(
    needed(ipAndPort),
    v.description('The address and port that metrics are served at: `0.0.0.0` or `[::]` for all addresses of the node.'),
    v.metadata({ example: '10.5.0.2:9100' }),
  ),
  clientCA: described(text, 'Certificates in PEM: clients with a certificate that one of these authorities signed are admitted.'),
  bearerToken: described(
    text,
    'Clients that send this token in the header `Authorization` are admitted. At least 16 characters; the node keeps its digest for the endpoint.',
  ),
})

const otlp = section({
  endpoint: v.pipe(
    needed(url('http', 'https')),
    v.description('The collector. Without a port it is that of the scheme; collectors usually listen on 4317 for gRPC and 4318 for HTTP.'),
    v.metadata({ example: 'https://collector.example.org:4318' }),
  ),
  protocol: described(oneOf(...protocols), 'The form in which the collector takes telemetry; by default `http/protobuf`.'),
  headers: described(mapOf(text), 'Sent with every request, such as `authorization`. Their values are not shown anywhere.'),
  attributes: described(
    mapOf(text),
    'Attributes of everything that is sent, besides `service.name`, `service.version` and `host.name`, which they may replace.',
  ),
  timeout: described(duration, 'How long an answer may take; by default `10s`.'),
  traces: described(
    section({
      ratio: described(share, 'The share of the calls that are traced when their caller decides nothing, from 0 to 1; by default 1.'),
    }),
    'Traces of the calls of the machine API, of the sequences of the machine and of slow controllers. Without this key none are sent.',
  ),
  metrics: described(
    section({ interval: described(duration, 'The time between two readings, at least `5s`; by default `60s`.') }),
    'The metrics that Prometheus would scrape. Without this key none are sent.',
  ),
  logs: described(
    section({
      services: described(
        listOf(text),
        'The services whose logs are sent, as `talosctl services` names them; `kernel` is the log of the kernel. By default all are.',
      ),
    }),
    'The logs of services and of the kernel, from the oldest line in memory on. Without this key none are sent.',
  ),
})

/** Metrics for other machines. */
export const TelemetryConfig = defineDocument({
  kind: 'TelemetryConfig',
  description: 'Metrics, traces and logs of this node for other machines.',
  schema: section({
    prometheus: described(
      prometheus,
      'An endpoint that Prometheus scrapes: `https://ADDRESS:PORT/metrics`, with the certificate of the machine API. Clients need a certificate or a token. Without this key nothing is served.',
    ),
    otlp: described(
      otlp,
      'A collector that telemetry is sent to with OTLP, the protocol of OpenTelemetry. Without this key nothing is sent.',
    ),
  }),
  rules({ prometheus, otlp }, report) {
    if (prometheus) endpointRules(prometheus, report)
    if (otlp) collectorRules(otlp, report)
  },
})

/** Ports of the node's own servers. */
const taken = new Set([2379, 2380, 6443, 7445, 10250, 10256, 10257, 10259, 50_000, 50_001, 51_820])
const shortestToken = 16
const longestToken = 1024

type Endpoint = v.InferOutput<typeof prometheus>

const shortestInterval = 5000
const longestTimeout = 60_000
/** Names of fields in HTTP (RFC 9110, section 5.1) and their values, without what ends a line. */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const headerValue = /^[\t\x20-\x7e]*$/

function collectorRules({ endpoint, headers = {}, timeout, traces, metrics, logs }: v.InferOutput<typeof otlp>, report: Reporter): void {
  if (endpoint === undefined) report.error(['otlp', 'endpoint'], 'the URL of a collector is required, like "https://collector:4318"')
  else if (/[?#@]/.test(endpoint))
    report.error(['otlp', 'endpoint'], 'a URL has no user, query or fragment here: put credentials into headers')
  if (traces === undefined && metrics === undefined && logs === undefined)
    report.error(['otlp'], 'nothing would be sent: add "traces: {}", "metrics: {}" or "logs: {}"')
  for (const [name, value] of Object.entries(headers))
    if (!headerName.test(name) || !headerValue.test(value))
      report.error(['otlp', 'headers', name], 'a header has a name of letters, digits and dashes, and a value of one line of ASCII')
  if (timeout !== undefined && (milliseconds(timeout) <= 0 || milliseconds(timeout) > longestTimeout))
    report.error(['otlp', 'timeout'], 'an answer may take more than 0 and at most 60 seconds')
  if (metrics?.interval !== undefined && milliseconds(metrics.interval) < shortestInterval)
    report.error(['otlp', 'metrics', 'interval'], 'metrics are read every 5 seconds at most: give "5s" or longer')
}

function endpointRules({ listen, clientCA, bearerToken }: Endpoint, report: Reporter): void {
  if (listen === undefined) report.error(['prometheus', 'listen'], 'an address with a port is required, like "0.0.0.0:9100"')
  else if (taken.has(splitHostPort(listen, 0).port))
    report.error(['prometheus', 'listen'], `port ${splitHostPort(listen, 0).port} is used by the system: 9100 is usual`)
  if (clientCA === undefined && bearerToken === undefined)
    report.error(['prometheus'], 'nobody would be admitted: set clientCA, bearerToken, or both')
  if (clientCA !== undefined && !areCertificates(clientCA))
    report.error(['prometheus', 'clientCA'], 'certificates in PEM of authorities are required')
  if (bearerToken !== undefined && !isToken(bearerToken))
    report.error(
      ['prometheus', 'bearerToken'],
      `a token has ${shortestToken} to ${longestToken} letters, digits and "-._~+/=": make one with "openssl rand -hex 32"`,
    )
}

const block = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

function areCertificates(pem: string): boolean {
  const blocks = pem.match(block) ?? []
  try {
    return blocks.length > 0 && blocks.every((one) => new X509Certificate(one).ca)
  } catch {
    return false
  }
}

/** The form of RFC 6750, section 2.1. */
const isToken = (token: string): boolean =>
  token.length >= shortestToken && token.length <= longestToken && /^[A-Za-z0-9._~+/-]+=*$/.test(token)
