/** Commands for images where there is no registry: fetched into files, served from them, and certificates for serving. */

import { existsSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { formatReference, parseReference } from '../../../../oci/reference.ts'
import { directHosts, RemoteRegistry } from '../../../../oci/remote-registry.ts'
import { newCA, newCertificate, year } from '../../../../pki/certificate.ts'
import { tlsKey } from '../../../../pki/key.ts'
import { ByteProgress } from '../../action/byte-progress.ts'
import { endpointOf } from '../../endpoint.ts'
import { UsageError } from '../../failure.ts'
import { list } from '../../flags.ts'
import { dockerCredentials } from '../../image/docker-credentials.ts'
import type { Io } from '../../io.ts'
import { writeNew } from '../../new-files.ts'

interface CreateOptions {
  images: string[]
  imageCachePath: string
  imageLayerCachePath: string
  layout: 'oci' | 'flat'
  platform: string[]
  cosignSignatures: boolean
  insecure?: boolean
  force?: boolean
}

const createExamples = `
Examples:
  talosctl image cache-create --images docker.io/library/nginx:1.29 --image-cache-path cache.oci
  talosctl image default | talosctl image cache-create --images - --image-cache-path cache --layout flat
`

/** talosctl image cache-create */
export const cacheCreate = (io: Io) =>
  new Command('cache-create')
    .description('Fetch images into a folder that machines can be served from; credentials are those of Docker.')
    .requiredOption('--images <image>', 'references, comma separated; "-" reads them from standard input, a line each', list())
    .requiredOption('--image-cache-path <folder>', 'where they go')
    .addOption(
      new Option('--layout <layout>', 'how they lie there: one image that holds them, or plain files')
        .choices(['oci', 'flat'])
        .default('oci'),
    )
    .addOption(new Option('--platform <platform>', 'only these of images for several').argParser(list()).default(['linux/amd64']))
    .option('--image-layer-cache-path <folder>', 'keep what was fetched here too, and look here first', '')
    .option('--cosign-signatures', 'fetch the signatures beside the images', true)
    .option('--no-cosign-signatures', 'leave signatures out')
    .option('--insecure', 'registries may use HTTP, or certificates that nobody knows')
    .option('--force', 'take the place of what is there')
    .addHelpText('after', createExamples)
    .action((options: CreateOptions) => runCacheCreate(io, options))

/** Fetches every image, and packs them into one image if requested. */
export async function runCacheCreate(io: Io, options: CreateOptions): Promise<void> {
  const { imageCachePath: target, layout, platform, force } = options
  const names = options.images.includes('-')
    ? [
        ...options.images.filter((name) => name !== '-'),
        ...Buffer.from(await io.readStdin())
          .toString()
          .split(/\s+/),
      ].filter(Boolean)
    : options.images
  if (names.length === 0) throw new UsageError('there is no image to fetch: name some with --images')
  const references = names.map((name) => parseReference(name))
  if (existsSync(target) && !force) throw new UsageError(`"${target}" is there already: name another folder, or use --force`)
  const { fillCache } = await import('../../image-cache/fill.ts')
  const registry = new RemoteRegistry({
    hosts: (domain) => directHosts(domain, options.insecure),
    credentials: await dockerCredentials(io.env),
    signal: io.signal,
  })
  const flat = layout === 'flat' ? target : join(target, '.cache')
  if (force) await rm(target, { recursive: true, force: true })
  await mkdir(flat, { recursive: true })
  for (const [index, reference] of references.entries()) {
    const name = formatReference(reference)
    const progress = new ByteProgress(io, `${index + 1} of ${references.length}: ${name}`)
    let bytes = 0
    const digest = await fillCache(registry, reference, {
      folder: flat,
      platforms: platform,
      signatures: options.cosignSignatures,
      layers: options.imageLayerCachePath || undefined,
      progress(count) {
        bytes += count
        progress.at(bytes)
      },
    }).finally(() => progress.end())
    io.stdout.write(`${name}: ${digest}\n`)
  }
  if (layout === 'flat') return
  const { packCache } = await import('../../image-cache/layout.ts')
  io.stderr.write(`packed into "${target}": ${await packCache(flat, target, platform)}\n`)
}

interface ServeFlags {
  address: string
  imageCachePath: string
  mirror: string[]
  tlsCertFile: string
  tlsKeyFile: string
}

/** talosctl image cache-serve */
export const cacheServe = (io: Io) =>
  new Command('cache-serve')
    .description('Serve the images of a flat cache as a registry until interrupted.')
    .requiredOption('--image-cache-path <folder>', 'a folder that "image cache-create --layout flat" has made')
    .option('--address <address>', 'where to listen', '127.0.0.1:3172')
    .addOption(
      new Option('--mirror <registry>', 'registries that are stood in for')
        .argParser(list())
        .default(['docker.io', 'ghcr.io', 'registry.k8s.io']),
    )
    .option('--tls-cert-file <file>', 'serve HTTPS with this certificate', '')
    .option('--tls-key-file <file>', 'its key', '')
    .action((flags: ServeFlags) => runCacheServe(io, flags))

/** Serves until interrupted, and prints the settings that a machine's configuration needs. */
export async function runCacheServe(
  io: Io,
  { address, imageCachePath: folder, mirror, tlsCertFile, tlsKeyFile }: ServeFlags,
): Promise<void> {
  if (!existsSync(join(folder, 'manifests')))
    throw new UsageError(`"${folder}" holds no images as plain files: make it with "talosctl image cache-create --layout flat"`)
  if (Boolean(tlsCertFile) !== Boolean(tlsKeyFile)) throw new UsageError('--tls-cert-file and --tls-key-file belong together')
  const tls = tlsCertFile ? { cert: await readFile(tlsCertFile, 'utf8'), key: tlsKey(await readFile(tlsKeyFile, 'utf8')) } : undefined
  const { host, port } = endpointOf(address)
  const { serveCache } = await import('../../image-cache/serve.ts')
  const server = serveCache({ folder, hostname: host, port, domains: mirror, tls })
  io.stderr.write(
    `serving ${mirror.join(', ')} at ${server.url}; configure machines with "machine.registries.mirrors" or RegistryMirrorConfig\n`,
  )
  if (!io.signal.aborted) await new Promise<void>((resolve) => io.signal.addEventListener('abort', () => resolve()))
  await server.close()
}

interface CertificateFlags {
  advertisedAddress: string[]
  advertisedName: string[]
  tlsCaFile: string
  tlsCertFile: string
  tlsKeyFile: string
}

/** talosctl image cache-cert-gen */
export const cacheCertGen = (io: Io) =>
  new Command('cache-cert-gen')
    .description('Make an authority and a certificate to serve a cache with.')
    .addOption(new Option('--advertised-address <ip>', 'addresses that machines reach it by').argParser(list()).default([]))
    .addOption(new Option('--advertised-name <name>', 'names that machines reach it by').argParser(list()).default([]))
    .option('--tls-ca-file <file>', 'where the authority’s certificate goes', 'ca.crt')
    .option('--tls-cert-file <file>', 'where the certificate goes', 'tls.crt')
    .option('--tls-key-file <file>', 'where its key goes', 'tls.key')
    .action((flags: CertificateFlags) => runCacheCertGen(io, flags))

/** Makes the three files; the authority's key is kept nowhere. */
export async function runCacheCertGen(io: Io, flags: CertificateFlags): Promise<void> {
  const { advertisedAddress: ips, advertisedName: dns } = flags
  const wrong = ips.find((ip) => isIP(ip) === 0)
  if (wrong) throw new UsageError(`"${wrong}" is not an IP address`)
  if (ips.length + dns.length === 0) throw new UsageError('nobody could verify it: name an --advertised-address or an --advertised-name')
  const now = io.now()
  const ca = newCA({ subject: { organizations: ['image cache'] }, kind: 'ecdsa', lifetime: 10 * year, now })
  const subject = { commonName: dns[0] ?? ips[0] }
  const { crt, key } = newCertificate({ ca, subject, sans: { ips, dns }, usage: ['serverAuth'], kind: 'ecdsa', lifetime: 10 * year, now })
  await writeNew([
    { path: flags.tlsCaFile, content: ca.crt, mode: 0o644 },
    { path: flags.tlsCertFile, content: crt, mode: 0o644 },
    { path: flags.tlsKeyFile, content: key },
  ])
}
