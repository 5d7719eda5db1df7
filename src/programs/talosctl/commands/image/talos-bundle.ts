import { Command } from 'commander'
import { directHosts, RemoteRegistry } from '../../../../oci/remote-registry.ts'
import { UsageError } from '../../failure.ts'
import { bundleImages, extensionImages, overlayImages } from '../../image/bundle.ts'
import { dockerCredentials } from '../../image/docker-credentials.ts'
import type { Io } from '../../io.ts'

interface BundleOptions {
  extensions: boolean
  overlays: boolean
  insecure?: boolean
}

/** talosctl image talos-bundle */
export const talosBundle = (io: Io) =>
  new Command('talos-bundle')
    .description('List the images of a Talos release, with its extensions and overlays, which its registry names.')
    .argument('[tag]', 'the release, as in v1.13.0 (default: the API level of this program)')
    .option('--extensions', 'with the system extensions', true)
    .option('--no-extensions', 'without them')
    .option('--overlays', 'with the overlays for boards', true)
    .option('--no-overlays', 'without them')
    .option('--insecure', 'the registry may use HTTP, or a certificate that nobody knows')
    .action((tag: string | undefined, options: BundleOptions) => runTalosBundle(io, tag, options))

/** Prints a reference a line: the images of the release, then the others, sorted. */
export async function runTalosBundle(io: Io, tag: string | undefined, options: BundleOptions): Promise<void> {
  const { extensions, overlays, insecure } = options
  const own = bundleImages(tag)
  const registry = new RemoteRegistry({
    hosts: (domain) => directHosts(domain, insecure),
    credentials: await dockerCredentials(io.env),
    signal: io.signal,
  })
  const others = await Promise.all([
    extensions ? extensionImages(registry, own.extensions) : [],
    overlays ? overlayImages(registry, own.overlays) : [],
  ]).catch((error) => {
    throw new UsageError(`${error.message}: list the images that need no registry with --extensions=false --overlays=false`)
  })
  for (const reference of [...Object.values(own), ...[...new Set(others.flat())].sort()]) io.stdout.write(`${reference}\n`)
}
