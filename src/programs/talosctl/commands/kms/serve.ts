import { isDeepStrictEqual } from 'node:util'
import { background } from '../../../../cosi/background.ts'
import { createLogger, formatEntry, type Logger } from '../../../../cosi/log.ts'
import type { Server } from '../../../../rpc/server/server.ts'
import { pause } from '../../../../timing/pause.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { formatHostPort, parseHostPort, parseIpPort } from '../../../../wire/host-port.ts'
import { serveKms } from '../../../kms/server.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { readKeyFile } from '../../kms/key-file.ts'
import { readMachines, readTls } from '../../kms/served-files.ts'

/** Flags of `talosctl kms serve`. */
export interface ServeOptions {
  readonly keyFile: string
  readonly listen: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly plaintext?: boolean
  readonly machines?: string
}

/** Milliseconds between two looks at the list of machines and the certificate. */
const reloadInterval = 2_000

/** Milliseconds for calls that run when the server ends. */
const grace = 1_000

/** Serves until the signal of `io` is aborted. */
export async function runServe(io: Io, options: ServeOptions): Promise<void> {
  const server = await serveKeys(io, options)
  await new Promise<void>((resolve) => {
    if (io.signal.aborted) resolve()
    else io.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await server.close(grace)
}

/** Starts the server. Throws UsageError. */
export async function serveKeys(
  io: Pick<Io, 'stderr' | 'now'>,
  { keyFile, listen, tlsCert, tlsKey, plaintext, machines }: ServeOptions,
  interval = reloadInterval,
): Promise<Pick<Server, 'port' | 'close'>> {
  const address = parseIpPort(listen) && parseHostPort(listen)
  if (!address) throw new UsageError(`--listen "${listen}" is no address and port: use for example 0.0.0.0:4050`)
  if (plaintext && (tlsCert || tlsKey)) throw new UsageError('--plaintext and a certificate exclude each other')
  if (!plaintext && !(tlsCert && tlsKey)) throw new UsageError('use --tls-cert and --tls-key, or --plaintext on a trusted network')
  const key = await readKeyFile(keyFile)
  const log = createLogger(
    (entry) => io.stderr.write(`${entry.time.toISOString()} ${formatEntry(entry)}\n`),
    {},
    () => io.now(),
  )
  let served = machines === undefined ? undefined : await readMachines(machines)
  let tls = tlsCert && tlsKey ? await readTls(tlsCert, tlsKey) : undefined
  const ended = new AbortController()
  try {
    const server = await serveKms(address, { key, tls, serves: (machine) => served?.has(machine) ?? true, log })
    log.info('KMS serves', {
      ...{ address: formatHostPort(address.host, server.port), tls: tls !== undefined },
      machines: served?.size ?? 'all',
    })
    const reload = async () => {
      if (machines !== undefined) {
        const next = await readMachines(machines)
        if (!isDeepStrictEqual(next, served)) log.info('machines reloaded', { machines: next.size })
        served = next
      }
      if (!tlsCert || !tlsKey) return
      const next = await readTls(tlsCert, tlsKey)
      if (isDeepStrictEqual(next, tls)) return
      await server.renew(next)
      tls = next
      log.info('certificate reloaded')
    }
    background(() => reloading(reload, log, { interval, signal: ended.signal }), log, 'reload ended')
    return {
      port: server.port,
      close: (grace) => {
        ended.abort()
        return server.close(grace)
      },
    }
  } catch (error) {
    throw new UsageError(`serve on "${listen}": ${messageOf(error)}`)
  }
}

/** Reads the files again and again. What cannot be used is logged once, and what was read before stays in force. */
async function reloading(reload: () => Promise<void>, log: Logger, every: { interval: number; signal: AbortSignal }): Promise<void> {
  let failure: string | undefined
  for (;;) {
    await pause(every.interval, every.signal)
    if (every.signal.aborted) return
    try {
      await reload()
      failure = undefined
    } catch (error) {
      if (messageOf(error) !== failure) log.error('reload failed, what was read before is used', { error: messageOf(error) })
      failure = messageOf(error)
    }
  }
}
