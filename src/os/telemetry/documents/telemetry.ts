import { X509Certificate } from 'node:crypto'
import * as v from 'valibot'
import { described, ipAndPort, needed, section, text } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'
import { splitHostPort } from '../../../wire/host-port.ts'

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

/** Metrics for other machines. */
export const TelemetryConfig = defineDocument({
  kind: 'TelemetryConfig',
  description: 'Metrics of this node for other machines.',
  schema: section({
    prometheus: described(
      prometheus,
      'An endpoint that Prometheus scrapes: `https://ADDRESS:PORT/metrics`, with the certificate of the machine API. Clients need a certificate or a token. Without this key nothing is served.',
    ),
  }),
  rules({ prometheus }, report) {
    if (prometheus) endpointRules(prometheus, report)
  },
})

/** Ports of the node's own servers. */
const taken = new Set([2379, 2380, 6443, 7445, 10250, 10256, 10257, 10259, 50_000, 50_001, 51_820])
const shortestToken = 16
const longestToken = 1024

type Endpoint = v.InferOutput<typeof prometheus>

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
