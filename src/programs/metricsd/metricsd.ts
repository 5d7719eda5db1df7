/** metricsd: serves the metrics of the node to Prometheus, with TLS, to clients that a TelemetryConfig admits. */
import { daemonFlags, startDaemon } from '../../cosi/daemon.ts'
import type { Logger } from '../../cosi/log.ts'
import { fromBase64 } from '../../pki/certificate.ts'
import { tlsKey } from '../../pki/key.ts'
import { connect } from '../../rpc/client/channel.ts'
import { follow } from '../../rpc/client/follow.ts'
import { ichor } from '../../rpc/enums.ts'
import { pause } from '../../timing/pause.ts'
import { formatHostPort } from '../../wire/host-port.ts'
import type { Format } from './accept.ts'
import { type Endpoint, endpointIn } from './endpoint.ts'
import { Scrapes } from './scrapes.ts'
import { type Identity, MetricsServer } from './server.ts'

const daemon = {
  name: 'metricsd',
  usage: 'usage: metricsd [--endpoint <file>] [--runtime <resource socket>] [--verbose]',
  options: {
    endpoint: { type: 'string', default: '/system/run/metricsd/endpoint.json' },
    runtime: { type: 'string', default: '/system/run/metricsd/runtime.sock' },
    verbose: { type: 'boolean', default: false },
  },
} as const

const { PROMETHEUS, OPENMETRICS } = ichor.v1.MetricsFormat
const formats: Readonly<Record<Format, number>> = { text: PROMETHEUS, openmetrics: OPENMETRICS }

/** Milliseconds until another attempt to listen, and in which init must answer. */
const retryInterval = 500
const readTimeout = 10_000

/** The program. */
export async function main(args: string[]): Promise<number> {
  const options = daemonFlags(daemon, args)
  if (!options) return 64
  const { log, signal } = startDaemon(options)
  let endpoint: Endpoint
  try {
    endpoint = endpointIn(options.endpoint)
  } catch (error) {
    log.error('the declaration of the endpoint cannot be read: init writes it where a TelemetryConfig has one', { error })
    return 78
  }
  await run(endpoint, options.runtime, log, signal)
  return 0
}

/** Serves until the signal, with the certificate the resource API shows. */
export async function run(endpoint: Endpoint, socket: string, log: Logger, signal: AbortSignal): Promise<void> {
  const channel = connect({ unix: socket }, { connectTimeout: 5_000 })
  const read = async (format: Format) => {
    const request = { format: formats[format] }
    const { messages } = await channel.unary('ichor.v1.MetricsService/Metrics', request, { deadline: readTimeout })
    return messages.map(({ text }) => text).join('')
  }
  const server = new MetricsServer({ endpoint, scrapes: new Scrapes(read), log })
  let latest: Identity | undefined
  let serving = Promise.resolve()
  // For a moment the address may be in use by the metricsd before this one, or not be assigned yet.
  const serve = async () => {
    for (let failures = 0; latest && !signal.aborted; failures++)
      try {
        server.identify(latest)
        log.info('metrics are served', { address: formatHostPort(endpoint.host, server.port) })
        return
      } catch (error) {
        if (failures === 0) log.error('listen failed, will be retried', { error })
        await pause(retryInterval, signal)
      }
  }
  const own = { namespace: 'secrets', type: 'ApiCertificates.secrets.talos.dev', id: 'api' }
  await follow(channel, own, { signal, log }, ({ spec }, gone) => {
    const { server: pair } = spec as { server?: { crt: string; key: string } }
    if (gone || !pair?.crt || !pair.key) return
    latest = { cert: fromBase64(pair.crt), key: tlsKey(fromBase64(pair.key)) }
    serving = serving.then(serve)
  })
  await serving
  server.close()
  channel.close()
}
