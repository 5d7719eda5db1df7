import { formatReference, ImageReferenceError, parseReference, type Reference } from '../../../oci/reference.ts'
import { directHosts, type RegistryHost, RemoteRegistry } from '../../../oci/remote-registry.ts'
import { callerAddress } from '../../../rpc/caller-metadata.ts'
import type { machine } from '../../../rpc/messages.ts'
import { type Context, type Method, readers, unary } from '../../../rpc/server/method.ts'
import { callerPlace, Places } from '../../../rpc/server/places.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { StoreView } from '../../../supervise/definition.ts'
import { credentialsOf } from '../../cri/public.ts'
import { RegistryConfig } from '../../cri/resources/registry-config.ts'
import type { Outbound } from '../../outbound.ts'
import { type Rule, ruleFor } from '../image-rules.ts'
import { ImageVerificationRule } from '../resources/image-verification-rule.ts'
import { TUFTrustedRoot, trustedRootId } from '../resources/tuf-trusted-root.ts'
import { type FoundSignature, signaturesBeside } from '../signatures/beside-image.ts'
import { type SignedImage, verifierKey, verifyByKey } from '../signatures/public-key.ts'
import { SignatureError } from '../signatures/signature-error.ts'

/** Callers choose which registries are queried, so the checks of each caller are limited. */
const checks = new Places('checks of signatures', { each: 4, all: 32, time: 60_000 })

/** Pulls of the two daemons of containerd, each of which has at most eight at a time (rootfs/containerd). */
const pulls = new Places('checks of signatures for pulls', { each: 16, all: 16, time: 60_000 })

/** Signatures of one image may fail for different reasons; a line names the first ones. */
const maxReasons = 3

/** The places for a call: only a process of this machine, which is no caller of apid, can be containerd. */
const placesFor = ({ metadata, roles }: Context) => (roles.has('os:image:verifier') && !metadata[callerAddress] ? pulls : checks)

/** Judges an image by the operator's rules and, where a rule requires one, by its signature. */
export const verifyImage = ({ outbound }: { outbound: Pick<Outbound, 'fetch'> }): Method =>
  unary('machine.ImageService/Verify', [...readers, 'os:image:verifier'], async ({ imageRef, credentials }, context) => {
    const { store } = context
    const reference = referenceOf(imageRef)
    const name = `${reference.domain}/${reference.repository}`
    const rule = ruleFor(
      [...store.list(ImageVerificationRule)].sort((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1)),
      name,
    )
    if (!rule) return { verified: false, message: 'no matched rule' }
    const { spec } = rule
    const { id } = rule.metadata
    if (spec.deny) throw new RpcError('PermissionDenied', `image "${name}" is denied by rule ${id}`)
    if (spec.skip) return { verified: false, message: `verification skipped by matched rule (${id})` }
    try {
      const verify = await verifierOf(spec, store)
      const { digest, refusal } = await placesFor(context).run(callerPlace(context), context.signal, async (signal) => {
        const registry = registryOf({ store, outbound }, credentials, signal)
        const digest = reference.digest ?? (await registry.manifest(reference)).digest
        return { digest, refusal: await refusalOf(registry, reference, digest, verify) }
      })
      if (refusal !== undefined) throw new RpcError('PermissionDenied', `image "${name}@${digest}" is refused by rule ${id}: ${refusal}`)
      const digested = formatReference({ ...reference, tag: undefined, digest })
      return { verified: true, message: `signed as rule ${id} requires`, digestedImageRef: digested }
    } catch (error) {
      if (error instanceof TypeError) throw new RpcError('FailedPrecondition', `rule ${id}: ${error.message}`)
      throw error
    }
  })

/** Verifies one signature. Throws SignatureError. */
type Verify = (found: FoundSignature, image: SignedImage) => Promise<void>

/** The verification that a rule requires. Throws TypeError when the rule has mistakes. */
async function verifierOf({ publicKeyVerifier, keylessVerifier }: Rule, store: StoreView): Promise<Verify> {
  if (publicKeyVerifier) {
    const key = verifierKey(publicKeyVerifier.certificate)
    return (found, image) => verifyByKey(found, image, key)
  }
  if (!keylessVerifier) throw new TypeError('the rule has neither a key nor an identity')
  // The packages are loaded for the first such rule: machines without one need neither their memory nor the time.
  const [{ acceptedIdentity, verifyKeyless }, { trustMaterialOf }] = await Promise.all([
    import('../signatures/keyless.ts'),
    import('../signatures/trusted-root.ts'),
  ])
  const accepted = acceptedIdentity(keylessVerifier)
  const root = store.get(TUFTrustedRoot, trustedRootId)?.spec.jsonData
  if (root === undefined) throw new RpcError('Unavailable', 'the trusted root is not loaded yet: try again')
  const trust = trustMaterialOf(root)
  return (found, image) => verifyKeyless(found, image, accepted, trust)
}

/** The reason why no signature of an image is accepted; undefined when one is. Throws RegistryError. */
async function refusalOf(registry: RemoteRegistry, reference: Reference, digest: string, verify: Verify): Promise<string | undefined> {
  const { domain, repository } = reference
  const image = { digest, manifest: async () => (await registry.manifest({ domain, repository, digest })).bytes }
  const reasons = new Set<string>()
  for await (const found of signaturesBeside(registry, reference, digest)) {
    try {
      await verify(found, image)
      return undefined
    } catch (error) {
      if (!(error instanceof SignatureError)) throw error
      reasons.add(error.message)
    }
  }
  return reasons.size === 0 ? 'it is not signed' : [...reasons].slice(0, maxReasons).join('; ')
}

function referenceOf(text: string): Reference {
  try {
    return parseReference(text)
  } catch (error) {
    if (error instanceof ImageReferenceError) throw new RpcError('InvalidArgument', error.message)
    throw error
  }
}

/** The registries of the machine configuration. Credentials that the caller sends replace those of the same host. */
function registryOf(
  { store, outbound }: { store: StoreView; outbound: Pick<Outbound, 'fetch'> },
  brought: machine.ImageServiceCredentials | undefined,
  signal: AbortSignal,
): RemoteRegistry {
  const { mirrors = {}, auths, tls = {} } = store.get(RegistryConfig, 'registries')?.spec ?? {}
  const known = credentialsOf(auths)
  const withTls = (host: RegistryHost): RegistryHost => {
    const given = tls[new URL(host.url).host]
    if (!given) return host
    const { ca, clientIdentity } = given
    const text = (base64: string) => Buffer.from(base64, 'base64').toString()
    return {
      ...host,
      tls: {
        ...(ca && { ca: text(ca) }),
        ...(clientIdentity?.crt && { cert: text(clientIdentity.crt), key: text(clientIdentity.key) }),
        rejectUnauthorized: !given.insecureSkipVerify,
      },
    }
  }
  return new RemoteRegistry({
    signal,
    fetch: outbound.fetch,
    credentials: (host) => (brought?.host === host ? brought : known?.(host)),
    hosts(domain) {
      const mirror = mirrors[domain] ?? mirrors['*']
      const first = (mirror?.endpoints ?? []).map(({ endpoint, overridePath }) => ({ url: endpoint, overridePath }))
      return [...first, ...(mirror?.skipFallback ? [] : directHosts(domain))].map(withTls)
    },
  })
}
