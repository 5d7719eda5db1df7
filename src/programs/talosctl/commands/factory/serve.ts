import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogger, formatEntry } from '../../../../cosi/log.ts'
import { codeOf } from '../../../../wire/errno.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { parseHostPort, parseIpPort } from '../../../../wire/host-port.ts'
import { Builds } from '../../../factory/build/builds.ts'
import { findReleases, versionsOf } from '../../../factory/releases.ts'
import { Schematics } from '../../../factory/schematics.ts'
import { type ServedFactory, serveFactory } from '../../../factory/server.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { readTls } from '../../kms/served-files.ts'
import { offeredExtensions } from './offered.ts'
import { signersOf } from './signers.ts'
import { givenVex } from './vex.ts'

/** Flags of `talosctl factory serve`. */
export interface ServeOptions {
  readonly images: string
  readonly listen: string
  readonly cache?: string
  readonly cacheSize: string
  readonly key?: string
  readonly extensions?: string
  readonly vex?: string[]
  readonly secureBootKey?: string
  readonly secureBootCert?: string
  readonly signCommand?: string
  readonly pcrKey?: string
  readonly externalUrl?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tokenFile?: string
}

/** Serves until the signal of `io` is aborted. */
export async function runServe(io: Io, options: ServeOptions): Promise<void> {
  const server = await startFactory(io, options)
  await new Promise<void>((resolve) => {
    if (io.signal.aborted) resolve()
    else io.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await server.close()
}

/** Starts the server. Throws UsageError. */
export async function startFactory(io: Pick<Io, 'stderr' | 'now' | 'env' | 'signal'>, options: ServeOptions): Promise<ServedFactory> {
  const { images, listen, cache, cacheSize, externalUrl, tlsCert, tlsKey, tokenFile } = options
  const address = parseIpPort(listen) && parseHostPort(listen)
  if (!address) throw new UsageError(`--listen "${listen}" is no address and port: use for example 127.0.0.1:8080`)
  if (!tlsCert !== !tlsKey) throw new UsageError('--tls-cert and --tls-key go together')
  const limit = parseCacheSize(cacheSize)
  const base = externalUrl === undefined ? undefined : parseExternalUrl(externalUrl)
  const signers = signersOf(options)
  const log = createLogger(
    (entry) => io.stderr.write(`${entry.time.toISOString()} ${formatEntry(entry)}\n`),
    {},
    () => io.now(),
  )
  const vex = await givenVex(options.vex ?? [])
  const tls = tlsCert && tlsKey ? await readTls(tlsCert, tlsKey) : undefined
  const token = tokenFile === undefined ? undefined : await readToken(tokenFile)
  const extensions = options.extensions === undefined ? [] : await offeredExtensions(io, options.extensions, log)
  let builds: Builds | undefined
  try {
    const versions = versionsOf(findReleases(images))
    const schematics = new Schematics(cache === undefined ? undefined : join(cache, 'schematics'))
    const kept = new Builds(cache === undefined ? undefined : join(cache, 'builds'), limit)
    builds = kept
    const workshop = { builds: kept, signers, extensions, url: base }
    const server = serveFactory({ ...address, images, schematics, workshop, vex, externalUrl: base, tls, token, log })
    log.info('image factory serves', { url: server.url, versions: versions.join(',') || 'none' })
    const close = async () => {
      await server.close()
      kept.close()
    }
    return { url: server.url, close }
  } catch (error) {
    builds?.close()
    throw new UsageError(`serve "${images}" on "${listen}": ${messageOf(error)}`)
  }
}

/** Bytes of a size as in "16GiB". Throws UsageError. */
function parseCacheSize(text: string): number {
  const units: Readonly<Record<string, number>> = { MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }
  const [, number = '', unit = ''] = /^(\d{1,6})(MiB|GiB|TiB)$/.exec(text) ?? []
  const size = Number(number) * (units[unit] ?? 0)
  if (size === 0) throw new UsageError(`--cache-size "${text}" is no size: use for example 16GiB`)
  return size
}

/** An address without a path at its end. Throws UsageError. */
function parseExternalUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password)
    throw new UsageError(`--external-url "${text}" is no address: use for example https://factory.example.org`)
  return url.href.replace(/\/+$/, '')
}

const longestToken = 4096

async function readToken(path: string): Promise<string> {
  const file = await open(path).catch((error: unknown) => {
    throw new UsageError(`read "${path}": ${codeOf(error)}`)
  })
  try {
    const { mode, size } = await file.stat()
    if (mode & 0o077)
      throw new UsageError(`token file "${path}" is open to others (mode 0${(mode & 0o777).toString(8)}): run "chmod 600 ${path}"`)
    const token = size > longestToken ? '' : (await file.readFile('utf8')).trim()
    if (!/^[\x21-\x7e]{16,}$/.test(token))
      throw new UsageError(`token file "${path}" must hold 16 to ${longestToken} letters without spaces`)
    return token
  } finally {
    await file.close()
  }
}
