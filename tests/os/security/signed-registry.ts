/** A registry of signed images, and the method of the API that judges images in it. */
import { createHash, type KeyObject } from 'node:crypto'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { RegistryConfig } from '../../../src/os/cri/resources/registry-config.ts'
import { verifyImage } from '../../../src/os/security/api/verify.ts'
import type { ruleFor } from '../../../src/os/security/image-rules.ts'
import { ImageVerificationRule } from '../../../src/os/security/resources/image-verification-rule.ts'
import { TUFTrustedRoot, trustedRootId } from '../../../src/os/security/resources/tuf-trusted-root.ts'

export const digestOf = (bytes: Uint8Array | string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
export const json = (value: unknown) => JSON.stringify(value)

/** A registry that wants a token, with images by path. */
export const contents = new Map<string, string>()
export const requested: string[] = []
export const silentRequested = Promise.withResolvers<void>()
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname, host, searchParams } = new URL(request.url)
    if (pathname === '/token')
      return Response.json({ token: `${searchParams.get('scope')} ${request.headers.get('authorization') ?? 'nobody'}` })
    if (pathname.startsWith('/v2/silent/')) {
      silentRequested.resolve()
      return new Promise<never>(() => {})
    }
    requested.push(`${pathname} ${request.headers.get('authorization') ?? ''}`)
    if (!request.headers.get('authorization'))
      return new Response('', { status: 401, headers: { 'www-authenticate': `Bearer realm="http://${host}/token",service="test"` } })
    const found = contents.get(pathname)
    return found === undefined ? new Response('', { status: 404 }) : new Response(found)
  },
})
// Several files use it.
server.unref()
export const host = `127.0.0.1:${server.port}`

export const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json'

/** Puts an image there without a signature. */
export function image(repository: string): { manifest: string; digest: string } {
  const manifest = json({ schemaVersion: 2, for: repository })
  const digest = digestOf(manifest)
  for (const name of ['v1', digest]) contents.set(`/v2/${repository}/manifests/${name}`, manifest)
  return { manifest, digest }
}

/** Puts a manifest with a bundle there; returns its descriptor. */
export function putBundle(repository: string, bundle: unknown): object {
  const text = typeof bundle === 'string' ? bundle : json(bundle)
  contents.set(`/v2/${repository}/blobs/${digestOf(text)}`, text)
  const manifest = json({ schemaVersion: 2, layers: [{ mediaType: bundleType, digest: digestOf(text) }] })
  contents.set(`/v2/${repository}/manifests/${digestOf(manifest)}`, manifest)
  return { mediaType: 'application/vnd.oci.image.manifest.v1+json', artifactType: bundleType, digest: digestOf(manifest) }
}

/** Puts bundles there as referrers of the image. */
export const refer = (repository: string, digest: string, ...bundles: unknown[]) =>
  contents.set(`/v2/${repository}/referrers/${digest}`, json({ manifests: bundles.map((bundle) => putBundle(repository, bundle)) }))

const pem = ({ publicKey }: { publicKey: KeyObject }) => publicKey.export({ type: 'spki', format: 'pem' }).toString()

type Rule = Parameters<typeof ruleFor>[0][number]['spec']
export const verify = (imageRef: string, ...rules: Partial<Rule>[]) => verifyFor({}, imageRef, ...rules)
export const verifyFor = async (
  {
    gone = new AbortController().signal,
    peer = '10.0.0.1',
    roles = [],
    root,
  }: { gone?: AbortSignal; peer?: string; roles?: readonly string[]; root?: string },
  imageRef: string,
  ...rules: Partial<Rule>[]
) => {
  const store = new Store()
  store.register(ImageVerificationRule)
  store.register(RegistryConfig)
  store.register(TUFTrustedRoot)
  if (root !== undefined) store.create(TUFTrustedRoot, trustedRootId, { jsonData: root })
  for (const [index, rule] of rules.entries())
    store.create(ImageVerificationRule, String(index).padStart(4, '0'), { skip: false, deny: false, ...rule })
  const context = { store, signal: gone, log: silent, roles: new Set(roles), peer, metadata: {} } as never
  return (verifyImage({ outbound: { fetch } }).handle as unknown as (request: object, context: never) => Promise<object>)(
    { imageRef },
    context,
  )
}
export const withKey = (key: { publicKey: KeyObject }): Partial<Rule> => ({
  imagePattern: '**',
  publicKeyVerifier: { certificate: pem(key) },
})
