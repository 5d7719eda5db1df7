/** Where signatures of an image are in its registry: as referrers, and under tags made of its digest. */
import { type ImageDocument, parseImageDocument } from '../../../oci/image-document.ts'
import type { Reference } from '../../../oci/reference.ts'
import { RegistryError, type RemoteRegistry } from '../../../oci/remote-registry.ts'
import { bundleType, maxBundle } from './bundle.ts'
import { maxPayload, payloadType } from './simple-signing.ts'

/** Maximum number of signatures that are looked at for one image. */
const maxSignatures = 100
const maxManifest = 128 << 10

/** A signature, not yet verified. */
export interface FoundSignature {
  readonly kind: 'bundle' | 'payload'
  readonly bytes: Uint8Array
  /** Of the layer that it is; those of a payload hold its signature. */
  readonly annotations: Readonly<Record<string, string>>
}

/** The registry as it is used here. */
export type SignatureRegistry = Pick<RemoteRegistry, 'manifest' | 'referrers' | 'smallBlob'>

/**
 * The signatures of the image with this digest, bundles first: its referrers (OCI distribution specification 1.1), then the tag
 * that stands for them in a registry that has none, then the older layout. Throws RegistryError.
 */
export async function* signaturesBeside(
  registry: SignatureRegistry,
  { domain, repository }: Reference,
  digest: string,
): AsyncGenerator<FoundSignature> {
  const place: Reference = { domain, repository }
  const tag = digest.replace(':', '-')
  let left = maxSignatures
  for (const find of [
    () => referrersOf(registry, { ...place, digest }),
    () => documentAt(registry, { ...place, tag }),
    () => documentAt(registry, { ...place, tag: `${tag}.sig` }),
  ]) {
    const document = await find()
    if (!document) continue
    for await (const found of signaturesIn(registry, place, document)) {
      if (left-- === 0) return
      yield found
    }
  }
}

async function* signaturesIn(registry: SignatureRegistry, place: Reference, document: ImageDocument): AsyncGenerator<FoundSignature> {
  yield* layersOf(registry, place, document)
  const bundles = (document.manifests ?? []).filter(({ artifactType }) => !artifactType || artifactType.startsWith(bundleType))
  for (const { digest } of bundles.slice(0, maxSignatures)) {
    const manifest = await documentAt(registry, { ...place, digest })
    if (manifest) yield* layersOf(registry, place, manifest)
  }
}

async function* layersOf(registry: SignatureRegistry, place: Reference, { layers }: ImageDocument): AsyncGenerator<FoundSignature> {
  for (const { mediaType, digest, annotations } of (layers ?? []).slice(0, maxSignatures)) {
    const kind = mediaType?.startsWith(bundleType) ? 'bundle' : mediaType === payloadType ? 'payload' : undefined
    if (!kind) continue
    const bytes = await unlessMissing(registry.smallBlob(place, digest, kind === 'bundle' ? maxBundle : maxPayload))
    if (bytes) yield { kind, bytes, annotations: annotations ?? {} }
  }
}

/** A manifest or an index; undefined when there is none. */
async function documentAt(registry: SignatureRegistry, reference: Reference): Promise<ImageDocument | undefined> {
  const manifest = await unlessMissing(registry.manifest(reference, maxManifest))
  return manifest && parseImageDocument(Buffer.from(manifest.bytes).toString())
}

async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found
  } catch (error) {
    if (error instanceof RegistryError && error.reason === 'missing') return undefined
    throw error
  }
}

/** Registries without this part of the specification answer in many ways; whether one answers at all is seen by the tags. */
async function referrersOf(registry: SignatureRegistry, reference: Reference & { digest: string }): Promise<ImageDocument | undefined> {
  try {
    return parseImageDocument(Buffer.from(await registry.referrers(reference)).toString())
  } catch (error) {
    if (error instanceof RegistryError) return undefined
    throw error
  }
}
