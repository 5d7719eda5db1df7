import { readFile } from 'node:fs/promises'
import { createLogger, formatEntry } from '../../../../cosi/log.ts'
import { tlsKey as pemOf } from '../../../../pki/key.ts'
import { codeOf } from '../../../../wire/errno.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { formatHostPort, parseHostPort, parseIpPort } from '../../../../wire/host-port.ts'
import { serveKms } from '../../../kms/server.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { readKeyFile } from '../../kms/key-file.ts'

/** Flags of `talosctl kms serve`. */
export interface ServeOptions {
  readonly keyFile: string
  readonly listen: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly plaintext?: boolean
}

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
  { keyFile, listen, tlsCert, tlsKey, plaintext }: ServeOptions,
): Promise<Awaited<ReturnType<typeof serveKms>>> {
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
  const tls = tlsCert && tlsKey ? { cert: await readPem(tlsCert), key: pemOf(await readPem(tlsKey)) } : undefined
  try {
    const server = await serveKms(address, { key, tls, log })
    log.info('KMS serves', { address: formatHostPort(address.host, server.port), tls: tls !== undefined })
    return server
  } catch (error) {
    throw new UsageError(`serve on "${listen}": ${messageOf(error)}`)
  }
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`read "${path}": ${codeOf(error)}`)
  }
}
