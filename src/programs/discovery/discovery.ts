/** The discovery server: members of a cluster find each other through it, in memory, over HTTP/2 with or without TLS. */

import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createLogger, formatEntry } from '../../cosi/log.ts'
import { Store } from '../../cosi/store.ts'
import { servePlain, serveTls } from '../../rpc/server/server.ts'
import { messageOf } from '../../wire/error-message.ts'
import { type HostPort, parseHostPort, parseIpPort } from '../../wire/host-port.ts'
import { Journal } from '../node-supervisor/journal.ts'
import { clusterPaths } from '../node-supervisor/layout.ts'
import { lock } from '../node-supervisor/lock.ts'
import { identify } from '../node-supervisor/process-identity.ts'
import { AddressLimits } from './address-limits.ts'
import { discoveryMethods } from './methods.ts'
import { Registry } from './registry.ts'

const usage =
  'usage: ichor discovery --listen <address:port> [--tls-cert <file> --tls-key <file>] [--redirect <host:port>] [--cluster-dir <directory>]'
const sweepInterval = 5_000

/** Reads `10.5.0.1:3000` or `[::1]:3000`. */
export const parseListen = (text: string): HostPort | undefined => (parseIpPort(text) ? parseHostPort(text) : undefined)

/** The program. */
export async function main(args: string[]): Promise<number> {
  const options = parse(args)
  const address = parseListen(options?.listen ?? '')
  const redirect = options?.redirect
  if (
    !options ||
    !address ||
    (redirect !== undefined && !/^[^\s/]+:\d{1,5}$/.test(redirect)) ||
    Boolean(options['tls-cert']) !== Boolean(options['tls-key'])
  ) {
    console.error(usage)
    return 64
  }
  const cluster = options['cluster-dir']
  const release = cluster ? enlist(cluster) : () => {}
  if (!release) return 66
  const log = createLogger((entry) => console.log(`${entry.time.toISOString()} ${formatEntry(entry)}`))
  const registry = new Registry()
  const limits = new AddressLimits()
  const serving = { methods: discoveryMethods(registry, { limits, redirect }), store: new Store(), log, roles: () => new Set<never>() }
  try {
    const server =
      options['tls-cert'] && options['tls-key']
        ? await serveTls(address, { cert: readFileSync(options['tls-cert']), key: readFileSync(options['tls-key']) }, serving)
        : await servePlain(address, serving)
    log.info('discovery serves', { address: address.host, port: server.port })
    const timer = setInterval(() => {
      registry.sweep()
      limits.sweep()
    }, sweepInterval)
    await new Promise<void>((resolve) => {
      process.once('SIGTERM', () => resolve())
      process.once('SIGINT', () => resolve())
    })
    clearInterval(timer)
    await server.close(1_000)
    return 0
  } catch (error) {
    console.error(`discovery: ${messageOf(error)}`)
    return 1
  } finally {
    release()
  }
}

function parse(args: string[]) {
  const string = { type: 'string' } as const
  try {
    return parseArgs({ args, options: { listen: string, 'tls-cert': string, 'tls-key': string, 'cluster-dir': string, redirect: string } })
      .values
  } catch {
    return undefined
  }
}

/** Writes this process into its cluster's journal and takes the place of its discovery server; undefined when the cluster is on its way out. */
function enlist(directory: string): (() => void) | undefined {
  const { journal, gateway, tombstone } = clusterPaths(directory)
  const self = identify(process.pid)
  if (!self || existsSync(tombstone) || !existsSync(directory)) return undefined
  new Journal(journal).write({ kind: 'process', ...self })
  if (existsSync(tombstone)) return undefined
  mkdirSync(gateway, { recursive: true, mode: 0o700 })
  return lock(join(gateway, 'discovery.lock'))
}
